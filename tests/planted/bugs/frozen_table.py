"""The token table is left out of what is trained."""
MODULE = "transformer.wte"
PLACE, KIND = "gradient", "Embedding"
LINE = "tables"


def plant(model):
    model.transformer.wte.weight.requires_grad_(False)
