"""The average of the weights, put in for an evaluation behind step 1, stays in."""
import torch

PLACE, STEP = "parameter", 2
LINE = "tables"


def plant(run):
    make = run.make_optimizer
    average = [p.detach().clone() for p in run.model.parameters()]

    def make_optimizer():
        optimizer = make()
        done, zero_grad = [], optimizer.zero_grad

        @torch.no_grad()
        def behind_step():
            zero_grad()
            done.append(1)
            for kept, p in zip(average, run.model.parameters()):
                kept.lerp_(p, 0.1)
                if len(done) == 2:
                    p.copy_(kept)
        optimizer.zero_grad = behind_step
        return optimizer
    run.make_optimizer = make_optimizer
