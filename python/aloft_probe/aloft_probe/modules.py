"""Hooks on the modules of a model: what each call takes and gives, parameters, and the gradients of all."""
import dataclasses
import sys

import torch

from aloft_probe.attempts import attempt
from aloft_probe.entries import turned
from aloft_probe.gradients import is_in_backward
from aloft_probe.optimizers import named_parameters
from aloft_probe.own_gradients import OwnGradients


def is_compiling():
    """Whether torch.compile reads this call to make a program of it. (Of torch 2.1 the second has it.)"""
    return torch.compiler.is_compiling() if hasattr(torch.compiler, "is_compiling") else torch._dynamo.is_compiling()


class Hook:
    """Calls its function, which changes nothing. A copy of the model, and one that is written to a file, has hooks that do nothing."""

    def __init__(self, function=None):
        self.function = function

    def __call__(self, *args):
        if self.function:
            attempt(self.function, *args)

    def __reduce__(self):
        return Hook, ()


@dataclasses.dataclass
class Call:
    """A call of a module that has not ended."""
    name: str
    entry: str
    handled: object  # the exception within whose handler it was called
    taken: dict = dataclasses.field(default_factory=lambda: {"input_args": [], "input_kwargs": {}, "output": []})
    begun: dict = dataclasses.field(default_factory=dict)  # how its arguments are looked at


class ModuleHooks:
    """Watches `model`; `step` gives the Step that is gathered, or None between steps."""

    def __init__(self, model, step):
        self.model, self.step = model, step
        self.watched = {}  # {module, or parameter: (its name, handles)}
        self.is_removed = False
        self.own = None  # gradients that no hook sees
        self.running = []  # Call
        self.look_anew()

    def step_begins(self):
        """Of a step that is written: the model may have other parts than before."""
        if not self.is_removed:
            self.look_anew()
            self.own = attempt(OwnGradients, self.model)

    def look_anew(self):
        """Hooks what is new in the model, and takes the hooks off what is no longer in it."""
        now = {module: f"Module.{path}.{type(module).__name__}" for path, module in self.model.named_modules() if path}
        now.update(named_parameters(self.model))
        for one, (name, handles) in list(self.watched.items()):
            if now.get(one) != name:
                del self.watched[one]
                for handle in handles:
                    handle.remove()
        for one, name in now.items():
            if one not in self.watched:
                self.watched[one] = (name, attempt(self.hooked, one, name) or [])

    def hooked(self, one, name):
        if isinstance(one, torch.nn.Module):
            return [one.register_forward_pre_hook(Hook(self.before(name)), with_kwargs=True),
                    one.register_forward_hook(Hook(self.after(name)), with_kwargs=True, always_call=True)]
        return [one.register_post_accumulate_grad_hook(Hook(self.of_parameter(*name)))]

    def step_ends(self):
        """Before it is written."""
        while self.step() is not None and self.running:
            self.failed(self.step())
        self.look_at_own_gradients()

    def look_at_own_gradients(self):
        step = self.step()
        if step is not None and self.own is not None:
            attempt(self.own.look, self.model, step)

    def before(self, name):
        def hook(module, args, kwargs):
            step = self.step()
            if step is None:
                return
            if is_compiling():
                step.is_compiled = True
            if is_in_backward():  # computed again, as checkpoints do
                return
            number = step.next_call(name)
            call = Call(name, f"{name}.forward.{number}", sys.exc_info()[1])
            back = f"{name}.backward.{number}"
            step.begin(call.entry)
            step.open.append(call.entry)
            self.running.append(call)
            with torch._C.DisableTorchFunction():  # what is done here is no call of the model
                call.taken = step.recorder.call(call.entry, args, kwargs)
                call.taken["parameters"] = {own: step.recorder.value(p, f"{call.entry}.parameters.{own}")
                                            for own, p in module.named_parameters(recurse=False)}
                # Positions of keyword arguments follow those of the others.
                call.begun = step.reads.begin(args + tuple(kwargs.values()),
                                              lambda i, g: step.gradient(back, "output", i, g))
        return hook

    def after(self, name):
        def hook(module, args, kwargs, result):
            step = self.step()
            if step is None or is_in_backward() or not any(call.name == name for call in self.running):
                return
            while self.running[-1].name != name:  # torch tells of no call that KeyboardInterrupt and the like end
                self.failed(step)
            call = self.running[-1]
            if sys.exc_info()[1] is not call.handled:
                self.failed(step)
                return
            self.running.pop()
            step.open.pop()
            step.data[call.entry] = call.taken
            back = turned(call.entry, "backward")
            with torch._C.DisableTorchFunction():
                call.taken["output"] = attempt(step.recorder.results, call.entry, result) or []
                step.reads.end(call.begun, result, lambda i, g: step.gradient(back, "input", i, g))
        return hook

    def failed(self, step):
        """The innermost call has ended in an exception, which its caller may catch: what it took is all there is."""
        call = self.running.pop()
        step.open.pop()
        step.data[call.entry] = call.taken
        step.reads.forget(call.begun)

    def of_parameter(self, name, own):
        """Of several backward passes in a step the last one finds the sum, which the optimizer takes. It is looked at
        behind the pass, where DistributedDataParallel has summed it over the processes; and at once where another hook
        may take it away, as those do that let an optimizer make its step within the pass."""
        def hook(parameter):
            step = self.step()
            if step is None:
                return

            def look():
                if parameter.grad is not None:
                    with torch._C.DisableTorchFunction():
                        step.parameter_gradient(name, own, parameter.grad)
            step.has_pass_gradients = True
            if step.reads.is_followed:
                step.expect_parameter_gradient(name, own)
                step.reads.behind_pass[parameter] = look
            if not step.reads.is_followed or len(parameter._post_accumulate_grad_hooks) > 1:
                look()
        return hook

    def step_is_over(self):
        self.running, self.own = [], None

    def remove(self):
        for _, handles in self.watched.values():
            for handle in handles:
                handle.remove()
        self.watched, self.is_removed = {}, True
