#!/usr/bin/env python3
"""probe_dump.py OUT LEVEL TASK [CHANGE]: a step of the GPT-2 of tests/fixtures/gpt2-tiny, dumped by msprobe 26.2 itself.
TASK is statistics, md5 or tensor; CHANGE a file of tests/planted/bugs or variants. For probe_table.py.
"""
import importlib
import json
import sys
from pathlib import Path

from msprobe.pytorch import PrecisionDebugger

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "planted"), str(ROOT / "python" / "aloft_probe")]
sys.dont_write_bytecode = True
from make_dumps import made_model  # noqa: E402


def changed(name):
    for kind in ("bugs", "variants"):
        if (ROOT / "tests" / "planted" / kind / f"{name}.py").exists():
            return importlib.import_module(f"{kind}.{name}")
    sys.exit(f"probe_dump: no {name} in tests/planted")


def main(out, level, task, change=""):
    Path(out).mkdir(parents=True, exist_ok=True)
    how = {"file_format": "npy"} if task == "tensor" else {
        "summary_mode": "md5" if task == "md5" else "statistics"}
    task = "tensor" if task == "tensor" else "statistics"
    config = Path(out) / "config.json"
    config.write_text(json.dumps({"task": task, "dump_path": str(out), "rank": [], "step": [], "level": level,
                                  "async_dump": False, task: {"scope": [], "list": [], "data_mode": ["all"], **how}}))
    model, data = made_model("gpt2-tiny")
    loss = model.loss
    if change:
        loss = changed(change).plant(model) or loss
    debugger = PrecisionDebugger(config_path=str(config))
    debugger.start(model=model)
    loss(*data).backward()
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
