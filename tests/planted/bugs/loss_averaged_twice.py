"""The loss is divided by the batch once more."""
MODULE = ""


def plant(model):
    return lambda tokens, targets: model.loss(tokens, targets) / len(tokens)
