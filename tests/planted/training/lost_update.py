"""Weights in bfloat16 without masters: what is added is too small to change them."""
PLACE, STEP = "update", 0
LINE = "tables"


def plant(run):
    run.model.bfloat16()
