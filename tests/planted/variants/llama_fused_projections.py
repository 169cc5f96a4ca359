"""Queries, keys and values by one product, gates and values of the MLP by another, as other programs have them."""
import torch
from torch import nn

MODEL = "llama-tiny"


def as_one(layers):
    one = nn.Linear(layers[0].in_features, sum(layer.out_features for layer in layers), bias=False)
    one.weight.data = torch.cat([layer.weight.data for layer in layers])
    return one


def plant(model):
    for layer in model.model.layers:
        a, m = layer.self_attn, layer.mlp
        qkv, both = as_one([a.q_proj, a.k_proj, a.v_proj]), as_one([m.gate_proj, m.up_proj])
        sizes = [p.out_features for p in (a.q_proj, a.k_proj, a.v_proj)]
        inner = m.gate_proj.out_features
        for name in ("q_proj", "k_proj", "v_proj"):
            del a._modules[name]
        for name in ("gate_proj", "up_proj"):
            del m._modules[name]
        a._modules = {"qkv_proj": qkv, **a._modules}
        m._modules = {"gate_up_proj": both, **m._modules}
        once(a, qkv, dict(zip(("q_proj", "k_proj", "v_proj"), sizes)))
        once(m, both, {"gate_proj": inner, "up_proj": inner})


def once(owner, whole, parts):
    """The owner finds the parts of what the fused product gives of one input, which is computed once."""
    kept = {}

    def part(begin, end):
        def call(x):
            if kept.get("x") is not x:
                kept.update(x=x, y=whole(x))
            return kept["y"][..., begin:end]
        return call
    begin = 0
    for name, size in parts.items():
        owner.__dict__[name] = part(begin, begin + size)
        begin += size
