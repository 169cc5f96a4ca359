"""A probe in the Trainer of PyTorch Lightning, which is not imported: its callbacks are of the trainer's own package,
`lightning` or `pytorch_lightning`."""
import importlib

from aloft_probe.probe import Probe


def callback_class(trainer):
    """The class that the callbacks of this trainer are made from."""
    for kind in type(trainer).__mro__:
        package, found, _ = kind.__module__.partition(".trainer")
        if found and kind.__name__ == "Trainer":
            return importlib.import_module(package + ".callbacks").Callback
    raise TypeError(f"{type(trainer).__name__} is no Trainer of PyTorch Lightning; of one of transformers it is "
                    "probe_trainer")


def probe_lightning(trainer, out, **options):
    """Lets trainer.fit() write its steps into `out`; `options` are those of Probe: task, level, at.

    Called before fit(). A step of the probe is one of the optimizer, with all of its micro-batches; the losses are those
    that the gradients are taken of, divided by the number of micro-batches.
    """
    class ProbeOfLightning(callback_class(trainer)):
        probe = step = None
        made = 0  # steps of the optimizer when the step in hand began

        def on_train_start(self, trainer, module):
            self.probe = Probe(module, out, optimizer=trainer.optimizers,
                               scaler=getattr(trainer.precision_plugin, "scaler", None), **options)

        def on_train_batch_start(self, trainer, module, batch, batch_idx):
            if self.step is None:
                self.made = trainer.global_step
                self.step = self.probe.step()
                self.step.__enter__()

        def on_before_backward(self, trainer, module, loss):
            self.probe.loss(loss)

        def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
            if trainer.global_step > self.made:
                step, self.step = self.step, None
                step.__exit__(None, None, None)

        def on_train_end(self, trainer, module):
            self.probe.remove()

        def on_exception(self, trainer, module, exception):
            """What was not finished is not written."""
            step, self.step = self.step, None
            if step is not None:
                step.__exit__(type(exception), exception, exception.__traceback__)

    callback = ProbeOfLightning()
    trainer.callbacks.append(callback)
    return callback
