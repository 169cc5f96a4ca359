"""A folder that one probe writes into: a lock file, held while it writes there."""
import os
import socket

from aloft_probe import warned

try:
    import fcntl
except ImportError:  # no POSIX: nobody is kept out
    fcntl = None


class FolderLock:
    """Holds out/rank.lock, or that of the process's own rank, until release() or the end of the process: the system
    takes it back from a process that was killed. BlockingIOError where another probe holds it. Where the file system
    keeps no locks nobody is kept out, which a RuntimeWarning says."""

    def __init__(self, out, rank):
        self.path, self.fd = os.path.join(out, rank + ".lock"), None
        os.makedirs(out, exist_ok=True)
        while fcntl and self.fd is None:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not is_at(fd, self.path):  # whoever held it has removed it meanwhile
                    os.close(fd)
                    continue
            except BlockingIOError as error:
                holder = os.pread(fd, 200, 0).decode("utf-8", "replace").strip()
                os.close(fd)
                raise BlockingIOError(
                    error.errno, f"another probe writes into this folder ({holder or 'a process that does not say which'})"
                    ": give each a folder of its own, or wait until it has ended; remove() ends a probe", out) from None
            except OSError as error:
                warned.of_no_locks(out, error)
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
            self.fd = fd

    def release(self):
        if self.fd is None:
            return
        fd, self.fd = self.fd, None
        if is_at(fd, self.path):
            os.unlink(self.path)
        os.close(fd)

    def __del__(self):
        self.release()


def is_at(fd, path):
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False
