"""Norms go by the batch in evaluation, too."""
MODEL, MODULE = "running", "bn1"


def plant(model):
    model.ready = lambda: None
