"""Mistakes and correct changes on Aloft's side of a port: what dump_training is told beside the right program, and
for a mistake where the probe is to see it first: place, step, module (None: whichever)."""

BUGS = {
    "targets_not_shifted": (["--program", "targets not shifted"], "loss", 0, None),
    "batches_exchanged": (["--program", "batches exchanged"], "data", 0, "wte"),
    "batch_twice": (["--program", "batch twice"], "data", 2, "wte"),
    "micro_batch_twice": (["--program", "micro-batch twice"], "data", 0, "wte"),
    "weights_not_loaded": (["--program", "weights not loaded"], "parameter", 0, None),
    "one_micro_batch": (["train.accumulate=1"], "loss", 0, None),
    "wrong_betas": (["optimizer.betas=[0.9,0.95]"], "optimizer", 0, None),
    "wrong_decay": (["optimizer.weight_decay=0.01"], "optimizer", 0, None),
    "wrong_eps": (["optimizer.eps=1e-4"], "optimizer", 0, None),
    "decay_in_the_gradient": (["optimizer.kind=adam"], "optimizer", 0, None),
    "biases_decay": (["optimizer.no_decay=[]"], "update", 0, None),
    "uphill": (["optimizer.maximize=true"], "update", 0, None),
    "no_clip": (["optimizer.clip_norm=0"], "gradient norm", 0, None),
    "longer_warmup": (["schedule.warmup=3"], "schedule", 0, None),
    "wrong_norm_eps": (["model.norm_eps=1e-3"], "forward", 0, "h.0.ln_1"),
    "dropout": (["model.dropout=0.1"], "forward", 0, None),
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
