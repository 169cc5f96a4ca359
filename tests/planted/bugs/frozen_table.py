"""The token table is left out of what is trained."""
MODULE = "transformer.wte"


def plant(model):
    model.transformer.wte.weight.requires_grad_(False)
