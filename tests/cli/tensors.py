"""Files of safetensors, read and written by the standard library alone."""
import json
import struct


def read_tensors(path):
    """{name: (entry, bytes)} of a safetensors file."""
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    entries = json.loads(content[8:8 + size])
    entries.pop("__metadata__", None)
    data = content[8 + size:]
    return {name: ({key: entry[key] for key in ("dtype", "shape")}, data[slice(*entry["data_offsets"])])
            for name, entry in entries.items()}


def write_tensors(path, tensors):
    header, data = {}, b""
    for name, (entry, content) in tensors.items():
        header[name] = {**entry, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
