"""The head reads what the last block gives."""
# The head is a part of the loss in the other program: no value lies between, and the norm is in that one alone.
MODULE = "ln_f"
PLACE, KIND = "loss", "LayerNorm"


def plant(model):
    body = model.transformer

    def forward(tokens):
        x = body.wte(tokens) + body.wpe.weight[:tokens.shape[1]]
        for block in body.h:
            x = block(x)
        return x
    body.forward = forward
