"""A norm sums in float16."""
MODULE = "transformer.ln_f"
PLACE, KIND = "forward", "LayerNorm"
LINE = "last_norm"


def plant(model):
    norm = model.transformer.ln_f

    def forward(x):
        h = x.half()
        mean = h.mean(-1, keepdim=True)
        spread = ((h - mean) ** 2).mean(-1, keepdim=True)
        return ((h - mean) / (spread + norm.eps).sqrt()).float() * norm.weight + norm.bias
    norm.forward = forward
