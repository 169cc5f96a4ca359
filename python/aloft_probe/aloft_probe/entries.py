"""Names of entries: Module.PATH.CLASS.DIRECTION.CALL of modules, NAME.CALL.DIRECTION of functions.

What a program calls its modules stands within, so that a direction is read from the end of a name alone.
"""
DIRECTIONS = ("forward", "backward", "parameters_grad", "parameters_update")


def parts_of(entry):
    """(what is called, direction, the number of the call); direction "" of what is no entry."""
    begin, before, last = ["", "", *entry.rsplit(".", 2)][-3:]
    if last in ("forward", "backward"):
        return begin, last, before
    return (begin, before, last) if before in DIRECTIONS else (entry, "", "")


def direction_of(entry):
    return parts_of(entry)[1]


def turned(entry, direction):
    """The entry of the same call in the other direction."""
    begin, own, call = parts_of(entry)
    return f"{begin}.{call}.{direction}" if entry.endswith("." + own) else f"{begin}.{direction}.{call}"
