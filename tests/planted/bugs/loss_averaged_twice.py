"""The loss is divided by the batch once more."""
MODULE = ""
PLACE, KIND = "loss", ""


def plant(model):
    return lambda tokens, targets: model.loss(tokens, targets) / len(tokens)
