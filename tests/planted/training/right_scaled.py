"""The right loop, with a loss scale."""
PLACE = None
SCALED = True


def plant(run):
    pass
