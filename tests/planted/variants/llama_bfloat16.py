"""The same in bfloat16."""
MODEL = "llama-tiny"


def plant(model):
    model.bfloat16()
