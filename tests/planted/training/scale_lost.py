"""The run went on behind step 1 with a new scaler: its scale had grown by then."""
PLACE, STEP = "loss scale", 2
SCALED = True


def plant(run):
    make, new = run.make_optimizer, run.scaler.state_dict()

    def make_optimizer():
        optimizer = make()
        done, zero_grad = [], optimizer.zero_grad

        def behind_step():
            zero_grad()
            done.append(1)
            if len(done) == 2:
                run.scaler.load_state_dict(new)
        optimizer.zero_grad = behind_step
        return optimizer
    run.make_optimizer = make_optimizer
