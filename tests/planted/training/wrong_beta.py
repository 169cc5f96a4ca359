"""The second moment's decay of other papers."""
PLACE, STEP = "optimizer", 0


def plant(run):
    run.betas = (0.9, 0.95)
