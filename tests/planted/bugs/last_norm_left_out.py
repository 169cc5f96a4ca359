"""The head reads what the last block gives."""
# The head is a part of the loss in the other program: no value lies between.
MODULE = ""


def plant(model):
    body = model.transformer

    def forward(tokens):
        x = body.wte(tokens) + body.wpe.weight[:tokens.shape[1]]
        for block in body.h:
            x = block(x)
        return x
    body.forward = forward
