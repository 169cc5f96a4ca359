"""Calls of torch's functions and of tensors' methods, seen from Python."""
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode, resolve_name

from aloft_probe import gradients
from aloft_probe.attempts import attempt
from aloft_probe.entries import turned
from aloft_probe.gradients import is_in_backward

# They make no numbers: they ask, or show the same elements in another shape.
PASSED_OVER = set("""
__get__ __getitem__ __len__ __repr__ __set__ __setitem__ backward chunk contiguous data_ptr detach detach_ dim
element_size expand expand_as flatten is_complex is_contiguous is_floating_point item movedim numel permute
register_hook requires_grad_ reshape retain_grad size split squeeze storage_offset stride t tolist transpose unbind
unflatten unsqueeze view view_as""".split())
PREFIXES = (("torch.nn.functional.", "Functional."), ("torch.Tensor.", "Tensor."), ("torch.", "Torch."))


def name_of(function):
    """"Functional.linear" of torch.nn.functional.linear; None of what is passed over."""
    own = getattr(function, "__name__", "")
    if own in PASSED_OVER:
        return None
    full = resolve_name(function) or ""
    for begin, prefix in PREFIXES:
        if full.startswith(begin) and full.count(".") == begin.count("."):
            return None if full.endswith("__get__") else prefix + full[len(begin):]
    return None


class FunctionCalls(TorchFunctionMode):
    """While it is entered, every function that gives a tensor has an entry. A function that calls others
    from Python is one entry. `step` gives the Step that is gathered."""

    def __init__(self, step):
        super().__init__()
        self.step = step
        self.updates = 0  # steps of optimizers that have begun, one within the other
        self.handles = []

    def __enter__(self):
        def begins(*_):
            self.updates += 1

        def ends(*_):
            self.updates -= 1

        self.updates = 0
        self.handles = [register_optimizer_step_pre_hook(begins), register_optimizer_step_post_hook(ends)]
        return super().__enter__()

    def __exit__(self, *of_exception):
        for handle in self.handles:
            handle.remove()
        return super().__exit__(*of_exception)

    def is_updating(self):
        """Whether an optimizer computes; a closure that it calls computes gradients."""
        return self.updates > 0 and not torch.is_grad_enabled()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        step, name = self.step(), name_of(func)
        if step is None or name is None or is_in_backward() or self.is_updating():
            return func(*args, **kwargs)
        is_in_place = name.endswith("_") and not name.endswith("__") or name.startswith("Tensor.__i")
        call = step.next_call(name)
        entry, back = f"{name}.{call}.forward", f"{name}.{call}.backward"
        taken = attempt(step.recorder.call, entry, args, kwargs)
        with torch._C.DisableTorchFunction():
            begun = attempt(step.reads.begin, () if is_in_place else args,
                            lambda i, g: step.gradient(back, "output", i, g))
        try:
            result = func(*args, **kwargs)
        except Exception:
            step.calls[name] -= 1
            step.reads.forget(begun or {})
            raise
        if taken is None or begun is None:
            return result
        if not self.makes_numbers(is_in_place, args, kwargs, result):
            step.calls[name] -= 1
            step.reads.forget(begun)
            return result
        attempt(self.ended, step, entry, taken, begun, result)
        return result

    @staticmethod
    def makes_numbers(is_in_place, args, kwargs, result):
        """Not where no tensor comes out, nor where the one that was given comes back, as of `x.to(x.dtype)`: the
        program has one object then, and what flows back through the call is not told from all that reads it."""
        if not any(isinstance(v, torch.Tensor) for v in gradients.tensors_in(result)):
            return False
        return is_in_place or not any(v is result for v in gradients.tensors_in((args, kwargs)))

    @staticmethod
    def ended(step, entry, taken, begun, result):
        step.begin(entry)
        taken["output"] = attempt(step.recorder.results, entry, result) or []
        step.data[entry] = taken
        back = turned(entry, "backward")
        with torch._C.DisableTorchFunction():
            step.reads.end(begun, result, lambda i, g: step.gradient(back, "input", i, g))
