"""The warm-up begins at nothing."""
PLACE, STEP = "schedule", 0


def plant(run):
    right = run.factor
    run.factor = lambda update: right(update - 1)
