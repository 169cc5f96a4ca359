"""Modules of other names and other classes, in the same places."""


def plant(model):
    body = model.transformer
    for block in body.h:
        for old, new in (("ln_1", "norm"), ("attn", "mixer"), ("mlp", "feed_forward")):
            block._modules[new] = block._modules[old]
    model._modules = {"decoder": body, "lm_head": model.lm_head}
    body._modules["blocks"] = body._modules.pop("h")
    for block in body.blocks:
        modules = block._modules
        block._modules = {new: modules[new] for new in ("norm", "mixer", "ln_2", "feed_forward")}
    body.__dict__["h"] = body.blocks
    model.__dict__["transformer"] = body
    for block in body.blocks:
        block.__dict__.update(ln_1=block.norm, attn=block.mixer, mlp=block.feed_forward)
