"""The loss of a micro-batch is not divided by their number."""
PLACE, STEP = "loss", 0


def plant(run):
    run.backward = lambda loss: loss.backward()
