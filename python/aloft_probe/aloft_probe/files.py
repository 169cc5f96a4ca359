"""The folder of a step: files that are whole or not there, dump.json the last of them."""
import json
import os
import re
import shutil

import torch


def folder_of(out, step):
    """out/stepN/rank, with the number of this process behind it where several train together."""
    rank = ""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        rank = str(torch.distributed.get_rank())
    return os.path.join(out, f"step{step}", "rank" + rank)


def emptied(folder):
    """The folder, without what an earlier run left in it."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def put_json(folder, name, value):
    path = os.path.join(folder, name)
    with open(path + ".partial", "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1, allow_nan=False)
    os.replace(path + ".partial", path)


def save_tensor(folder, name, t):
    """The file's name: `name`, fit for a file system, with .pt behind it."""
    own = re.sub(r"[^A-Za-z0-9_.\-]", "_", name)[:240] + ".pt"
    # A copy, so that of a view its own elements alone are written.
    torch.save(t.detach().to("cpu", copy=True).contiguous(), os.path.join(folder, own))
    return own
