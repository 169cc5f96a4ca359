"""Models that the probe cannot look into, said before a step is made."""
import torch


def check(model):
    """TypeError of a model whose modules are called from elsewhere than Python, or in copies."""
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
