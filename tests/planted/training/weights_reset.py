"""A weight is set back behind the first step, as by a checkpoint that was loaded once more."""
PLACE, STEP, MODULE = "parameter", 1, "transformer.h.1.mlp.c_fc"
LINE = "in_mlp"


def plant(run):
    weight = run.model.transformer.h[1].mlp.c_fc.weight
    before = weight.detach().clone()
    right = run.batch

    def batch(number):
        if number == run.MICRO_BATCHES:
            weight.data.copy_(before)
        return right(number)
    run.batch = batch
