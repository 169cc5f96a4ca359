"""Norms go by the batch in evaluation, too."""
MODEL, MODULE = "running", "bn1"
PLACE, KIND = "forward", "BatchNorm2d"
LINE = "first_norm"


def plant(model):
    model.ready = lambda: None
