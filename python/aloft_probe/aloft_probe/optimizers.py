"""What optimizers do in a step: how they are set, how large the gradients are that they take, what they add to
parameters."""
import torch

from aloft_probe import refused, warned
from aloft_probe.attempts import attempt
from aloft_probe.statistics import magnitudes


def named_parameters(model):
    """{parameter: (entry without what follows the class, own name)} of those that are trained."""
    classes = {path: type(module).__name__ for path, module in model.named_modules()}
    names = {}
    for path, parameter in model.named_parameters():
        owner, _, own = path.rpartition(".")
        entry = f"Module.{owner}.{classes[owner]}" if owner else f"Module.{classes[owner]}"
        if parameter.requires_grad:
            names[parameter] = (entry, own)
    return names


def settings_of(optimizer):
    """Its kind and the numbers of its formula, as Aloft names them; of groups those of the largest."""
    group = max(optimizer.param_groups, key=lambda g: sum(p.numel() for p in g["params"]))
    settings = {"kind": type(optimizer).__name__.lower()}
    if group.get("betas") is not None:
        settings["betas"] = [float(beta) for beta in group["betas"]]
    for key in ("eps", "momentum", "dampening", "alpha", "nesterov", "amsgrad"):
        if isinstance(group.get(key), (bool, int, float)):
            settings[key] = float(group[key])
    decays = [float(g["weight_decay"]) for g in optimizer.param_groups if g.get("weight_decay") is not None]
    if decays:
        settings["weight_decay"] = max(decays)
    return settings, float(group["lr"]) if group.get("lr") is not None else None


def without_loss(t):
    """In a type wide enough that a difference of two is what it is."""
    if t.is_complex():
        return t.to(torch.complex128 if t.dtype == torch.complex128 else torch.complex64)
    return t.to(torch.float64 if t.dtype == torch.float64 else torch.float32)


class OptimizerHooks:
    """Watches optimizers of torch.optim over parameters of `model`; `step` gives the Step that is gathered, or None."""

    def __init__(self, model, optimizers, step, see_gradients):
        self.model, self.step = model, step
        self.see_gradients = see_gradients  # called where an optimizer is about to take them
        self.names = {}  # of the parameters that are trained
        self.before = {}  # parameters as they were
        self.taken = None  # settings and rate of the first optimizer, as its step takes them
        self.depth = {}  # of steps within steps: a class calls that of the class it is made from
        self.has_stepped = False
        self.is_told = False  # that a step of the probe had none of the optimizer's
        self.handles = []
        for optimizer in optimizers:
            refused.check_optimizer(optimizer, set(model.parameters()))
        self.optimizers = list(optimizers)
        for optimizer in self.optimizers:
            self.handles += [optimizer.register_step_pre_hook(self.begins), optimizer.register_step_post_hook(self.ends)]

    def ours(self, optimizer):
        return [p for group in optimizer.param_groups for p in group["params"] if p in self.names]

    def begins(self, optimizer, args, kwargs):
        step = self.step()
        self.depth[optimizer] = self.depth.get(optimizer, 0) + 1
        if step is None or self.depth[optimizer] > 1:
            return
        self.names = named_parameters(self.model)
        if optimizer is self.optimizers[0]:  # a schedule behind it sets the next one's
            self.taken = attempt(settings_of, optimizer)
        with torch.no_grad(), torch._C.DisableTorchFunction():
            self.before[optimizer] = attempt(lambda: {p: p.detach().clone() for p in self.ours(optimizer)}) or {}
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if closure is None:
            return attempt(self.take_norm, step, optimizer)
        return args[:1], {**kwargs, "closure": self.followed(closure, step, optimizer)}

    def followed(self, closure, step, optimizer):
        """A closure makes the gradients within the optimizer's step, as Lightning's do; LBFGS calls it again and again,
        and the first ones are those that the step begins with."""
        is_first = True

        def made(*args, **kwargs):
            nonlocal is_first
            result = closure(*args, **kwargs)
            if is_first:
                is_first = False
                attempt(self.take_norm, step, optimizer)
            return result
        return made

    def take_norm(self, step, optimizer):
        self.see_gradients()
        with torch.no_grad(), torch._C.DisableTorchFunction():
            grads = [p.grad for p in self.ours(optimizer) if p.grad is not None and not p.grad.is_sparse]
            norms = [torch.linalg.vector_norm(magnitudes(g) if g.is_complex() else g, dtype=torch.float64)
                     for g in grads]
            if norms:
                norm = torch.linalg.vector_norm(torch.stack([n.to(norms[0].device) for n in norms]))
                # What a fused optimizer divides by itself.
                scale = getattr(optimizer, "grad_scale", None)
                step.taken_norms.append(norm if scale is None else norm / scale.to(norm.device))

    def ends(self, optimizer, args, kwargs):
        self.depth[optimizer] = self.depth.get(optimizer, 1) - 1
        if self.depth[optimizer] > 0:
            return
        step, before = self.step(), self.before.pop(optimizer, None)
        if step is None or before is None:
            return
        self.has_stepped = True
        self.record(step, before.items())

    def record(self, step, pairs):
        with torch.no_grad(), torch._C.DisableTorchFunction():
            for p, old in pairs:
                attempt(lambda: step.update(*self.names[p], without_loss(p.detach()) - without_loss(old)))

    def step_is_over(self, step, may_skip):
        """What is known when the step ends; `may_skip`: a scaler leaves out the optimizer's step."""
        if step is None:
            return
        if not self.has_stepped and not may_skip:
            if not self.is_told:
                self.is_told = True
                warned.of_optimizer()
            return
        settings, rate = self.taken or attempt(settings_of, self.optimizers[0]) or ({}, None)
        if rate is not None:
            step.training["learning_rate"] = rate
        step.training.update(skipped=not self.has_stepped, optimizer=settings)
        if not self.has_stepped:
            self.names = named_parameters(self.model)
            for optimizer in self.optimizers:
                self.record(step, ((p, p) for p in self.ours(optimizer)))

    def forget(self):
        self.before, self.depth, self.has_stepped, self.taken = {}, {}, False, None

    def remove(self):
        for handle in self.handles:
            handle.remove()
