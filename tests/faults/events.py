"""TensorBoard's event files, read as TensorBoard does: what a newer session wrote from a step on takes the
place of what was there (an event with the status START purges what is not before its step)."""
import struct

START = 1


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a protocol buffer's fields; bytes stay bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            size = 8 if kind == 1 else 4
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def records(path):
    """The whole records of a file; one that was cut short ends it."""
    data, at = path.read_bytes(), 0
    while at + 12 <= len(data):
        size = struct.unpack_from("<Q", data, at)[0]
        if at + 16 + size > len(data):
            return
        yield data[at + 12:at + 12 + size]
        at += 16 + size


def scalars(run):
    """(step, tag, value) in order, without what was measured."""
    found = {}
    files = [path for path in run.glob("events.out.tfevents.*") if path.is_file()]
    for path in sorted(files, key=lambda p: (p.stat().st_mtime_ns, p.name)):
        for record in records(path):
            event = dict(fields(record))
            step = event.get(2, 0)
            if 7 in event and dict(fields(event[7])).get(1) == START:
                found = {at: value for at, value in found.items() if at[0] < step}
            for number, value in fields(event.get(5, b"")):
                scalar = dict(fields(value))
                tag = scalar[1].decode()
                if number == 1 and 2 in scalar and "_s" not in tag.rsplit("/", 1)[-1]:
                    found[step, tag] = struct.unpack("<f", scalar[2])[0]
    return [(step, tag, repr(value)) for (step, tag), value in sorted(found.items())]
