"""Gradients are not clipped."""
PLACE, STEP = "gradient norm", 0


def plant(run):
    run.clip = lambda: None
