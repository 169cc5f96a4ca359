#!/usr/bin/env python3
"""config_check_pack.py OUT.zip SEED FILE [permuted]: a pack as msprobe 26.2 makes it in a program of PyTorch: a small
network, one step, and the hyper-parameters of FILE (*.sh, *.yaml). `permuted`: rows of its first weight change places,
which msprobe's four figures do not show. For config_check.py.
"""
import sys

import torch
from msprobe.core.config_check import ConfigChecker


def main(out, seed, file, *how):
    ConfigChecker.apply_patches("pytorch")
    torch.manual_seed(int(seed))
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    if "permuted" in how:
        with torch.no_grad():
            model[0].weight.copy_(model[0].weight.flip(0))
    ConfigChecker(model=model, shell_path=[file], output_zip_path=out, fmk="pytorch")
    model(torch.arange(8.0).reshape(2, 4) * int(seed))


if __name__ == "__main__":
    main(*sys.argv[1:])
