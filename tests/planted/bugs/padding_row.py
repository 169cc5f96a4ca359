"""The embedding's padding_idx is a word of the text: the gradient leaves out its row."""
MODULE = "transformer.wte"
PLACE, KIND = "gradient", "Embedding"
LINE = "tables"


def plant(model):
    model.transformer.wte.padding_idx = 68
