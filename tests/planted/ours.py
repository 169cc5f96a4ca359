"""Mistakes and correct changes on Aloft's side of a port: what dump_training is told beside the right program, and
for a mistake where the probe is to see it first: place, step, module (None: whichever), line (None: none).

OWN: mistakes of own_gpt2.cpp: place, module, its line, and the line of model.py where that run is the first."""

BUGS = {
    "targets_not_shifted": (["--program", "targets not shifted"], "loss", 0, None, None),
    "batches_exchanged": (["--program", "batches exchanged"], "data", 0, "wte", "tables"),
    "batch_twice": (["--program", "batch twice"], "data", 2, "wte", "tables"),
    "micro_batch_twice": (["--program", "micro-batch twice"], "data", 0, "wte", "tables"),
    "weights_not_loaded": (["--program", "weights not loaded"], "parameter", 0, None, "tables"),
    "one_micro_batch": (["train.accumulate=1"], "loss", 0, None, None),
    "wrong_betas": (["optimizer.betas=[0.9,0.95]"], "optimizer", 0, None, None),
    "wrong_decay": (["optimizer.weight_decay=0.01"], "optimizer", 0, None, None),
    "wrong_eps": (["optimizer.eps=1e-4"], "optimizer", 0, None, None),
    "decay_in_the_gradient": (["optimizer.kind=adam"], "optimizer", 0, None, None),
    "biases_decay": (["optimizer.no_decay=[]"], "update", 0, None, "attn_out"),
    "uphill": (["optimizer.maximize=true"], "update", 0, None, "tables"),
    "no_clip": (["optimizer.clip_norm=0"], "gradient norm", 0, None, None),
    "longer_warmup": (["schedule.warmup=3"], "schedule", 0, None, None),
    "wrong_norm_eps": (["model.norm_eps=1e-3"], "forward", 0, "h.0.ln_1", "attn"),
    "dropout": (["model.dropout=0.1"], "forward", 0, None, "block"),
}

OWN = {
    "scale": ("forward", "h.0.attn", "own_projection", "attn"),
    "keys_and_values_exchanged": ("forward", "h.0.attn", "own_projection", "attn"),
    "mask_off_by_one": ("forward", "h.0.attn", "own_projection", "attn"),
    "axis": ("forward", "h.0.attn", "own_projection", "attn"),
    "transposed": ("forward", "h.0.attn.c_proj", "own_projection", "attn_out"),
    "bias_twice": ("forward", "h.0.attn", "own_bias", "attn"),
    "gelu": ("forward", "h.0.mlp", "own_narrow", "mlp"),
    "eps": ("forward", "h.0.ln_1", "own_norm", "attn"),
    "tokenizer": ("forward", "wte", "own_rows", "tables"),
    "first_position": ("forward", "wpe", "own_places", "tables"),
}

VARIANTS = {
    "right": [],
    "bf16": ["precision.level=O2:bf16"],
    "fp16": ["precision.level=O2:fp16"],
    "bf16_casts": ["precision.level=O1:bf16"],
    "fp16_casts": ["precision.level=O1:fp16"],
    "one_thread": ["train.threads=1"],
    "two_threads": ["train.threads=2"],
    "unfused": ['train.skip_passes=["fuse-elementwise"]'],
}
