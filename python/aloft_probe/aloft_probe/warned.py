"""What a loop leaves out, so that less is written than it asks for, said in plain words."""
import atexit
import os
import warnings
import weakref

from aloft_probe.entries import direction_of

WRITERS = weakref.WeakValueDictionary()  # probes that have not been removed, by their folders


def say(text):
    """As a RuntimeWarning of the line that calls the probe: once a line, as Python's filters have it."""
    warnings.warn(text, RuntimeWarning, stacklevel=3)


def of_no_locks(folder, error):
    """A file system on which nobody can be kept out of a folder."""
    warnings.warn(f"the file system of {folder} keeps no locks ({error.strerror}), so that another program which "
                  "writes into the folder is not noticed: see that none does", RuntimeWarning, 6)


class Entered:
    """A step that is to be entered; one that is thrown away instead says so."""

    def __init__(self, step):
        self.step, self.is_entered = step, False

    def __enter__(self):
        self.is_entered = True
        return self.step.__enter__()

    def __exit__(self, *of_exception):
        return self.step.__exit__(*of_exception)

    def __del__(self):
        if not self.is_entered:
            warnings.warn("probe.step() was called without `with`, so that nothing is written: the step stands in "
                          "`with probe.step():`, from the forward pass to the optimizer's step", RuntimeWarning, 2)


class StepsNotMade:
    """Says, when the probe is removed or the program ends, which steps of `at` were never made."""

    def __init__(self, at):
        self.at, self.made = at, 0
        if at is not None:
            atexit.register(self.tell)

    def tell(self):
        if self.at is None:
            return
        atexit.unregister(self.tell)
        missing = sorted(step for step in self.at if step >= self.made)
        self.at = None
        if missing:
            named = ", ".join(map(str, missing[:3])) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
            warnings.warn(f"of the steps of `at` these were never made: {named}; there were {self.made}, counted "
                          "from 0", RuntimeWarning, 3)


def of_folder(probe):
    """Another probe that writes into the same folder, where the steps of one would take the place of the other's."""
    folder = os.path.realpath(probe.out)
    if folder in WRITERS:
        warnings.warn(f"two probes write into {probe.out}, so that steps of the one take the place of the other's: "
                      "give each a folder of its own, and remove() the first where it is over", RuntimeWarning, 3)
    WRITERS[folder] = probe


def forget_folder(probe):
    folder = os.path.realpath(probe.out)
    if WRITERS.get(folder) is probe:
        del WRITERS[folder]


def has_direction(step, *wanted):
    return any(direction_of(entry) in wanted for entry in step.data)


def of_no_backward(step):
    """A step whose values need gradients, and which has none; whether that was said."""
    gives = [record for entry, parts in step.data.items() if direction_of(entry) == "forward"
             for record in parts["output"]]
    needs = any(isinstance(record, dict) and record.get("requires_grad") for record in gives)
    has = has_direction(step, "backward", "parameters_grad")
    if needs and not has:
        warnings.warn("no backward() was seen within `with probe.step():`, so that no gradient is written: backward() "
                      "of the loss belongs inside; where there is none on purpose, call the model under "
                      "torch.no_grad()", RuntimeWarning, 5)
    return needs and not has


def of_calls(step):
    """A step in which no call was seen."""
    if not has_direction(step, "forward"):
        warnings.warn("the probe saw no call of the model in this step: within `with probe.step():` the model itself "
                      "is to be called, not one that torch.compile has made of it, nor another one", RuntimeWarning, 5)


def of_gradients(step):
    """A step that has gradients of parameters, and none of what modules take and give."""
    if step.level != "op" and has_direction(step, "parameters_grad") and not has_direction(step, "backward"):
        warnings.warn("no gradient flowed through a call that the probe saw, so that those of parameters alone are "
                      "written: modules were called without gradients, as checkpoint(..., use_reentrant=True) does; "
                      "with use_reentrant=False they are seen", RuntimeWarning, 5)


def of_passes(step):
    """A backward pass of which only what calls gave was seen."""
    if step.reads.was_missed:
        warnings.warn("a backward pass began that the probe did not see, so that gradients of what calls took are not "
                      "written of it: its function was taken from torch.autograd before the step, or is not Python's; "
                      "call loss.backward() or torch.autograd.backward(loss)", RuntimeWarning, 5)


def of_optimizer():
    """A step in which the optimizer that the probe was given made none."""
    warnings.warn("the optimizer made no step within `with probe.step():`, so that neither its rate nor what it adds "
                  "to parameters is written: optimizer.step() belongs inside; where it is left out on purpose (micro-"
                  "batches), a step of the probe is better all that belongs to one update", RuntimeWarning, 6)
