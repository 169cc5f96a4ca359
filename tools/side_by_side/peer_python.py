"""An interpreter that has PyPI's current torch: one that is given, or a virtual environment."""
import os
import pathlib
import shutil
import subprocess
import sys

from programs import ROOT

VENV = ROOT / "build" / "peers" / "venv"
STAMP = VENV / "complete"  # written last: a half-made environment is made again
PACKAGES = ("torch", "numpy", "transformers")


def given():
    """$JUDGE_PYTHON, where it is set and has torch."""
    path = os.environ.get("JUDGE_PYTHON")
    if not path:
        return None
    if not shutil.which(path):
        sys.exit(f"bench_peers: JUDGE_PYTHON={path} is no program; unset it, and a virtual "
                 "environment is made")
    return pathlib.Path(shutil.which(path)).absolute()


def installed():
    """The interpreter that is there already, or None."""
    if found := given():
        return found
    return VENV / "bin" / "python" if is_complete() else None


def is_complete():
    """Made, and with all that is needed by now."""
    return STAMP.exists() and STAMP.read_text().split() == list(PACKAGES)


def make():
    """Makes the environment; a few GB from PyPI, once. Returns None, having said why, where it
    cannot: rows then lack their peers and say so."""
    print(f"bench_peers: installing {' and '.join(PACKAGES)} into {VENV.relative_to(ROOT)}",
          file=sys.stderr, flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    steps = ([sys.executable, "-m", "venv", VENV],
             [VENV / "bin" / "python", "-m", "pip", "install", "--quiet", "--upgrade",
              "--disable-pip-version-check", *PACKAGES])
    for command in steps:
        done = subprocess.run([str(c) for c in command], stderr=subprocess.STDOUT,
                              stdout=subprocess.PIPE, text=True)
        if done.returncode:
            print(done.stdout[-2000:], file=sys.stderr)
            print("bench_peers: no PyTorch: peers are missing (Debian: tools/setup peers installs "
                  "what a virtual environment and torch.compile need)", file=sys.stderr)
            return None
    STAMP.write_text("\n".join(PACKAGES) + "\n")
    return VENV / "bin" / "python"
