"""The token table is left out of what is trained."""
MODULE = "transformer.wte"
PLACE, KIND = "gradient", "Embedding"


def plant(model):
    model.transformer.wte.weight.requires_grad_(False)
