"""The residual of attention is taken behind the norm, in one block."""
MODULE = "transformer.h.1"
PLACE, KIND = "forward", "Block"
LINE = "block"


def plant(model):
    block = model.transformer.h[1]

    def forward(x):
        x = block.ln_1(x)
        x = x + block.attn(x)
        return x + block.mlp(block.ln_2(x))
    block.forward = forward
