"""A block without the way around its attention."""
MODULE = "transformer.h.1"
PLACE, KIND = "forward", "Block"
LINE = "block"


def plant(model):
    block = model.transformer.h[1]

    def forward(x):
        x = block.attn(block.ln_1(x))
        return x + block.mlp(block.ln_2(x))
    block.forward = forward
