"""Norms and biases decay as weights do."""
PLACE, STEP = "update", 0
LINE = "attn"


def plant(run):
    run.decays = lambda name, parameter: True
