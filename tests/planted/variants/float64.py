"""The same model in float64."""


def plant(model):
    model.double()
