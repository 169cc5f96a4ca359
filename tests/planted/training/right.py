"""The right loop."""
PLACE = None


def plant(run):
    pass
