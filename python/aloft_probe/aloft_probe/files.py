"""The folder of a step: files that are whole or not there, dump.json the last of them."""
import hashlib
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


def refuse_old_dump(out):
    """FileExistsError where this process has whole steps of an earlier run there: those that the new run does not make
    would be taken for its own."""
    rank = os.path.basename(folder_of(out, 0))
    names = os.listdir(out) if os.path.isdir(out) else []
    old = [name for name in names if re.fullmatch(r"step[0-9]+", name) and
           os.path.exists(os.path.join(out, name, rank, "dump.json"))]
    if old:
        first = os.path.join(out, min(old, key=lambda name: int(name[4:])))
        raise FileExistsError(f"the folder holds a dump already: {first}. Give the probe another folder, or remove "
                              "what is in this one, so that none of its steps is taken for one of this run")


def remove_unfinished(out):
    """Steps of this process that did not come to their end, as of one that was killed: nobody else will."""
    rank = os.path.basename(folder_of(out, 0))
    for name in os.listdir(out) if os.path.isdir(out) else []:
        folder = os.path.join(out, name, rank)
        if re.fullmatch(r"step[0-9]+", name) and os.path.isdir(folder) and not os.path.exists(
                os.path.join(folder, "dump.json")):
            shutil.rmtree(folder, ignore_errors=True)
            if not os.listdir(os.path.join(out, name)):
                os.rmdir(os.path.join(out, name))


def emptied(folder):
    """The folder, without what a step that did not come to its end left in it."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def without_lone_surrogates(text):
    """JSON in ASCII, in which halves of characters, as in names of files that are no UTF-8, are text: they are no
    characters, and strict readers refuse them."""
    return re.sub(r"\\ud[89ab]..\\ud[c-f]..|\\(ud[89a-f]..)|\\.", lambda m: "\\\\" + m[1] if m[1] else m[0], text)


def put_json(folder, name, value):
    path = os.path.join(folder, name)
    with open(path + ".partial", "w", encoding="utf-8") as file:
        file.write(without_lone_surrogates(json.dumps(value, indent=1)))
    os.replace(path + ".partial", path)


LONGEST = 200  # characters of a name; file systems take 255 bytes


def name_of_file(name):
    """`name`, fit for a file system; where it is changed for that, a hash of it keeps it apart from others."""
    own = re.sub(r"[^A-Za-z0-9_.\-]", "_", name)[:LONGEST]
    if own != name:
        own += "-" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return own + ".pt"


def save_tensor(folder, name, t):
    """Writes it, gives the file's name."""
    own = name_of_file(name)
    # A copy, so that of a view its own elements alone are written.
    t = t.detach().to("cpu", copy=True)
    torch.save(t.contiguous() if t.layout == torch.strided else t, os.path.join(folder, own))
    return own
