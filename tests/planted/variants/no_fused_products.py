"""Products and biases apart."""


def plant(model):
    for block in model.transformer.h:
        for layer in (block.attn.c_attn, block.attn.c_proj, block.mlp.c_fc, block.mlp.c_proj):
            layer.forward = lambda x, layer=layer: (x.unsqueeze(-2) @ layer.weight).squeeze(-2) + layer.bias
