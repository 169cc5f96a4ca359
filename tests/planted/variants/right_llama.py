"""A Llama: rotary positions, groups of heads that share keys."""
MODEL = "llama-tiny"


def plant(model):
    pass
