"""A probe in the training loop of Hugging Face's Trainer, which is not imported: what it calls is what counts."""
from aloft_probe.probe import Probe


class ProbeOfTrainer:
    """A callback of a Trainer, which calls all of its events: a step of the probe is one of the optimizer, with all of
    its micro-batches."""

    def __init__(self, out, options):
        self.out, self.options = out, options
        self.probe = self.step = None

    def __getattr__(self, event):
        """Events that are not listened to."""
        if event.startswith("on_"):
            return lambda *args, **kwargs: None
        raise AttributeError(event)

    def on_train_begin(self, args, state, control, model=None, optimizer=None, **others):
        self.probe = Probe(model, self.out, optimizer=optimizer, **self.options)

    def on_step_begin(self, args, state, control, **others):
        self.step = self.probe.step()
        self.step.__enter__()

    def on_step_end(self, args, state, control, **others):
        step, self.step = self.step, None
        step.__exit__(None, None, None)

    def on_train_end(self, args, state, control, **others):
        self.probe.remove()

    def loss_of(self, compute_loss):
        """The trainer's function, of whose losses those of steps are written: an evaluation has others."""
        def computed(model, inputs, return_outputs=False, **others):
            result = compute_loss(model, inputs, return_outputs=return_outputs, **others)
            if self.step is not None:
                self.probe.loss(result[0] if return_outputs else result)
            return result
        return computed


def probe_trainer(trainer, out, **options):
    """Lets trainer.train() write its steps into `out`; `options` are those of Probe: task, level, at.

    Called before train(). The losses are those that the trainer takes the gradients of: where it divides them by the
    number of micro-batches, `aloft probe compare` says so, and takes it for no divergence.
    """
    callback = ProbeOfTrainer(out, options)
    trainer.compute_loss = callback.loss_of(trainer.compute_loss)
    trainer.add_callback(callback)
    return callback
