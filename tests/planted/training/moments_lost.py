"""The run went on behind step 1 with its weights and without the optimizer's moments."""
PLACE, STEP = "update", 2
LINE = "tables"


def plant(run):
    make = run.make_optimizer

    def make_optimizer():
        optimizer = make()
        done, zero_grad = [], optimizer.zero_grad

        def behind_step():
            zero_grad()
            done.append(1)
            if len(done) == 2:
                optimizer.state.clear()
        optimizer.zero_grad = behind_step
        return optimizer
    run.make_optimizer = make_optimizer
