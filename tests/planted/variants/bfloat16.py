"""The same model in bfloat16: rounding, and no error."""


def plant(model):
    model.bfloat16()
