"""Models that the probe cannot look into, said before a step is made."""
import re

import torch


def check(model):
    """TypeError of what is no model, and of one whose modules are called from elsewhere than Python, or in copies."""
    if isinstance(model, type) and issubclass(model, torch.nn.Module):
        raise TypeError(f"the model is the class {model.__name__}, and not a module: make one: {model.__name__}(...)")
    if not isinstance(model, torch.nn.Module):
        what = getattr(model, "__name__", type(model).__name__)
        raise TypeError(f"the model is {what!r}, no torch.nn.Module: the probe looks at the calls of modules; give it "
                        "the module whose calls the function makes")
    if isinstance(model, (torch.nn.DataParallel,)):
        raise TypeError("torch.nn.DataParallel runs copies of the model, which the probe does not see: "
                        "probe the module itself, or train with DistributedDataParallel")
    for path, module in model.named_modules():
        is_compiled = getattr(module, "_compiled_call_impl", None) is not None
        if is_compiled or hasattr(module, "_orig_mod") or isinstance(module, torch.jit.ScriptModule):
            where = f"the module {path!r}" if path else "the model"
            how = "torch.jit" if isinstance(module, torch.jit.ScriptModule) else "torch.compile"
            raise TypeError(f"{where} was compiled by {how}: its calls cannot be seen; give the probe "
                            "the model as it was before, and run that")


def steps_in(part, at):
    """Of "4", or of "4-6", as the command line has them."""
    found = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", part)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, -1)
    if last < first:
        raise ValueError(f"at is {at!r}: steps from 0 on, such as \"0,4-6\"")
    return range(first, last + 1)


def steps(at):
    """The steps that are asked for as a set; None: every one."""
    if at is None:
        return None
    if isinstance(at, str):
        at = [step for part in at.split(",") for step in steps_in(part.strip(), at)]
    if isinstance(at, int) and not isinstance(at, bool):
        at = [at]
    try:
        wanted = list(at)
    except TypeError:
        raise TypeError(f"at is {at!r}: the steps that are written, such as [0, 99]") from None
    for step in wanted:
        if isinstance(step, bool) or not hasattr(step, "__index__"):
            raise TypeError(f"at has {step!r}: steps are whole numbers, counted from 0")
        if step < 0:
            raise ValueError(f"at has {step}: steps are counted from 0, and nobody knows which is the last")
    return {int(step) for step in wanted}


def check_loss(loss):
    if not isinstance(loss, torch.Tensor):
        raise TypeError(f"probe.loss() was given {type(loss).__name__}: the loss is a tensor, on which backward() is "
                        "called; give it before .item()")
    if loss.numel() != 1:
        raise ValueError(f"probe.loss() was given {tuple(loss.shape)}: the loss is one number, of which backward() is "
                         "called; give it the mean, or the sum")


def unwrapped(optimizer):
    """The optimizer of torch.optim within one of accelerate or Lightning, which has no hooks of its own."""
    inner = getattr(optimizer, "optimizer", None)
    while isinstance(inner, torch.optim.Optimizer) and inner is not optimizer:
        optimizer, inner = inner, getattr(inner, "optimizer", None)
    return optimizer


def check_optimizer(optimizer, names):
    """Of an optimizer, and the parameters of the model."""
    if isinstance(optimizer, type) and issubclass(optimizer, torch.optim.Optimizer):
        raise TypeError(f"the optimizer is the class {optimizer.__name__}: make one: "
                        f"{optimizer.__name__}(model.parameters(), ...)")
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is no torch.optim.Optimizer")
    if not any(p in names for group in optimizer.param_groups for p in group["params"]):
        raise ValueError(f"{type(optimizer).__name__} has none of the parameters of the model: it was made of "
                         "another model, or before the model's parameters were replaced")


def check_step(step):
    """Of a step that is over: torch.compile may have made a program of the model after the probe was made."""
    if step.is_compiled:
        raise TypeError("the step runs a program that torch.compile has made of the model: what the probe sees of it is "
                        "not what it computes without the probe; call the model as it was before, and leave "
                        "torch.compile out of runs that are compared")
