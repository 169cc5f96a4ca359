"""Builds the package for pip (PEP 517), with nothing but Python: an install needs no network, and no other package."""
import base64
import hashlib
import io
import re
import tarfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TEXT = (HERE / "pyproject.toml").read_text(encoding="utf-8")


def said(key):
    """The text of a key of pyproject.toml."""
    return re.search(rf'^{key} = "(.*)"$', TEXT, re.MULTILINE).group(1)


NAME, VERSION = said("name").replace("-", "_"), said("version")
METADATA = (f"Metadata-Version: 2.1\nName: {said('name')}\nVersion: {VERSION}\nSummary: {said('description')}\n"
            f"Requires-Python: {said('requires-python')}\nDescription-Content-Type: text/markdown\n\n")
WHEEL = "Wheel-Version: 1.0\nGenerator: aloft_probe\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def sources():
    """{path in the package's folder: bytes}."""
    return {f"aloft_probe/{path.name}": path.read_bytes() for path in sorted((HERE / "aloft_probe").glob("*.py"))}


def metadata():
    return METADATA.encode() + (HERE / "README.md").read_bytes()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = sources()
    info = f"{NAME}-{VERSION}.dist-info"
    files[f"{info}/METADATA"], files[f"{info}/WHEEL"] = metadata(), WHEEL.encode()
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    name = f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            wheel.writestr(path, data)
    return name


def build_sdist(sdist_directory, config_settings=None):
    files = {**sources(), "PKG-INFO": metadata()}
    for name in ("pyproject.toml", "README.md", "build_backend.py"):
        files[name] = (HERE / name).read_bytes()
    name = f"{NAME}-{VERSION}.tar.gz"
    with tarfile.open(Path(sdist_directory) / name, "w:gz") as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(f"{NAME}-{VERSION}/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return name


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
