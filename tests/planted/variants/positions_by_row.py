"""Positions are handed over for each row, as they are where a batch has padding."""


def plant(model):
    wpe = model.transformer.wpe
    wpe.register_forward_pre_hook(lambda module, args: (args[0].expand(2, -1),))
