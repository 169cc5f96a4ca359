"""The loss scale stays what it is at the beginning."""
PLACE, STEP = "loss scale", 2
SCALED = True


def plant(run):
    run.update_scale = lambda: run.scaler.update(run.scaler.get_scale())
