"""The ids of another tokenizer."""
MODULE = "transformer.wte"
PLACE, KIND = "data", "Embedding"
LINE = "tables"


def plant(model):
    return lambda tokens, targets: model.loss((tokens + 1) % model.transformer.wte.num_embeddings, targets)
