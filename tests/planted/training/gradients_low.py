"""The sum of the micro-batches' gradients is kept in bfloat16."""
PLACE, STEP = "gradient", 0
LINE = "last_norm"


def plant(run):
    def between(_part):
        for parameter in run.model.parameters():
            parameter.grad = parameter.grad.bfloat16().float()
    run.between = between
