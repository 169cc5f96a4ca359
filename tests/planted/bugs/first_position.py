"""Positions begin at 1."""
MODULE = "transformer.wpe"
PLACE, KIND = "data", "Embedding"
LINE = "tables"


def plant(model):
    wpe = model.transformer.wpe
    last = wpe.num_embeddings - 1
    wpe.register_forward_pre_hook(lambda module, args: ((args[0] + 1).clamp(max=last),))
