"""Running statistics of a norm stay those of the beginning."""
MODEL, MODULE = "running", "bn1"


def plant(model):
    model.bn1.momentum = 0.0
