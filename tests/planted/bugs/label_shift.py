"""Every position is to predict itself."""
MODULE = ""


def plant(model):
    return lambda tokens, targets: model.loss(tokens, tokens)
