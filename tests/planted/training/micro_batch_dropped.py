"""Gradients are set to zero between micro-batches."""
PLACE, STEP = "gradient", 0
LINE = "last_norm"


def plant(run):
    def between(part):
        if part == 0:
            run.optimizer.zero_grad()
    run.between = between
