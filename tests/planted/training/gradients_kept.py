"""Gradients are not set to zero behind a step."""
PLACE, STEP = "gradient", 1
LINE = "last_norm"


def plant(run):
    made = run.make_optimizer

    def make_optimizer():
        optimizer = made()
        optimizer.zero_grad = lambda: None
        return optimizer
    run.make_optimizer = make_optimizer
