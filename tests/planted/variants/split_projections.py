"""Three projections in place of the fused one."""
from torch import nn


class Joined(list):
    """What the three give, called like what the fused one gives."""

    def split(self, _dim, _axis):
        return self


def parts_of(whole):
    dim = whole.weight.shape[0]
    for i in range(3):
        part = nn.Linear(dim, dim)
        part.weight.data = whole.weight.data[:, i * dim:(i + 1) * dim].T.contiguous()
        part.bias.data = whole.bias.data[i * dim:(i + 1) * dim].clone()
        yield part


def plant(model):
    for block in model.transformer.h:
        attention = block.attn
        parts = list(parts_of(attention._modules.pop("c_attn")))
        attention._modules = {**dict(zip(("q_proj", "k_proj", "v_proj"), parts)), **attention._modules}
        attention.__dict__["c_attn"] = lambda x, parts=parts: Joined(part(x) for part in parts)
