"""The second step's batches come in the third one, and the other way round."""
PLACE, STEP, MODULE = "data", 1, "transformer.wte"
LINE = "tables"


def plant(run):
    right = run.batch
    run.batch = lambda number: right({2: 4, 3: 5, 4: 2, 5: 3}.get(number, number))
