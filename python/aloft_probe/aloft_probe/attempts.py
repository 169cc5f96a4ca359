"""What the probe does within a program's step: where it fails, the program goes on."""
import warnings

from aloft_probe import stacks

TOLD = set()  # each is said once in a process


def attempt(act, *args, **kwargs):
    """What act() gives; None, with a RuntimeWarning, where it raises. What the system says (a full disk) is raised."""
    try:
        return act(*args, **kwargs)
    except OSError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:300] if str(error).strip() else ''}"
        if said not in TOLD:
            TOLD.add(said)
            file, line, _ = (stacks.current() or ((__file__, 0, ""),))[0]
            warnings.warn_explicit(f"the probe cannot look into something here ({said}), so that what it would have "
                                   "written of that is left out; the program goes on", RuntimeWarning, file, line)
        return None
