"""A batch is handed out twice."""
PLACE, STEP, MODULE = "data", 2, "transformer.wte"
LINE = "tables"


def plant(run):
    right = run.batch
    run.batch = lambda number: right(number - (number > 4))
