"""A straight line down in place of half a cosine."""
PLACE, STEP = "schedule", 2


def plant(run):
    run.WARMUP = 2
    run.factor = lambda update: (update + 1) / 2 if update < 2 else 1 - 0.9 * (update - 1) / (run.TOTAL - 2)
