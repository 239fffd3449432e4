"""Dask's commands in processes forked from one that has imported what they need.

Such a process is there in a tenth of the time that a new interpreter takes. `make nightly` starts
new interpreters, as users do.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import IO

import psutil

#: By which its process is known.
FILE = __file__
#: Bytes of a message at most.
LONGEST = 1 << 20
#: What may differ from when the template was made: pytest sets the first anew for each test, a
#: process is told the second, Dask sets others where it has started a nanny (the one without an
#: underscore in its oldest version here), and threadpoolctl the last where SciPy imports it.
VARYING = {
    "PYTEST_CURRENT_TEST", "PYTHONPATH", "PYTHONHASHSEED", "__DASK_PARENT_PID", "DASK_PARENT",
    "MALLOC_TRIM_THRESHOLD_", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS",
    "KMP_DUPLICATE_LIB_OK",
}  # fmt: skip


class Forked:
    """A command that was started; its interface is that of `subprocess.Popen`, as far as needed."""

    def __init__(self, pid: int, stderr: IO[str]) -> None:
        self.pid, self.stderr = pid, stderr

    def terminate(self) -> None:
        """SIGTERM, unless it has ended."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, unless it has ended."""
        self._send(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> None:
        """Wait for its end; raises `subprocess.TimeoutExpired`."""
        try:
            psutil.Process(self.pid).wait(timeout)
        except psutil.NoSuchProcess:
            pass
        except psutil.TimeoutExpired as late:
            raise subprocess.TimeoutExpired("dask", timeout or 0) from late

    def _send(self, number: int) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass


class Template:
    """The process that they are forked from; it ends with this one."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = _lasting(environment)
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            line = [sys.executable, FILE, str(theirs.fileno())]
            self._process = subprocess.Popen(line, env=environment, pass_fds=[theirs.fileno()])
        self.pid = self._process.pid
        atexit.register(self.close)

    def close(self) -> None:
        """End it; what was forked goes on."""
        self._socket.close()
        self._process.wait()

    def start(self, words: Sequence[str], path: str) -> Forked:
        """Begin one of Dask's commands, with this PYTHONPATH."""
        read, write = os.pipe()
        socket.send_fds(self._socket, [json.dumps([words, path]).encode()], [write])
        os.close(write)
        return Forked(int(self._socket.recv(LONGEST)), os.fdopen(read))

    def fits(self, environment: dict[str, str]) -> bool:
        """Whether it has the environment that a process is to have."""
        return self._environment == _lasting(environment)


def _lasting(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in VARYING}


def _serve(asked: socket.socket) -> tuple[Sequence[str], str, int] | None:
    """What a child is to do; None in the template itself, when nobody asks any more."""
    while True:
        message, files, _, _ = socket.recv_fds(asked, LONGEST, 1)
        if not message:
            return None
        pid = os.fork()
        if not pid:
            return *json.loads(message), files[0]
        os.close(files[0])
        asked.send(str(pid).encode())


def _main() -> None:
    import gc
    from importlib import import_module

    for name in ("distributed.cli.dask_scheduler", "distributed.cli.dask_worker"):
        import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        to_do = _serve(asked)
    if to_do is not None:
        _become(*to_do)


def _become(words: Sequence[str], path: str, stderr: int) -> None:
    import runpy

    os.environ["PYTHONPATH"] = path
    sys.path += [folder for folder in path.split(os.pathsep) if folder not in sys.path]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for file, number in ((null, 0), (null, 1), (stderr, 2)):
        os.dup2(file, number)
    for file in (null, stderr):
        os.close(file)
    sys.argv = ["dask", *words]
    runpy.run_module("dask", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
