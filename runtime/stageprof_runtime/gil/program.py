"""The watch as a program: its modules, compiled, and what a bare Python runs them with."""

from __future__ import annotations

import functools
import importlib.util
import marshal
import sys
from types import CodeType
from typing import Any, Final

from stageprof_runtime.gil.permission import spy
from stageprof_runtime.gil.state import GilState, NoGil

#: What the program is made of, each after what it imports.
MODULES: Final = ("messages", "looking", "spying", "unwinding", "watch")
#: Makes the modules that its input begins with and runs the last; looks for nothing on any path.
_BOOT: Final = """\
import marshal, os, sys
size, said = int(sys.argv[2]), b""
while len(said) < size:
    said += os.read(0, size - len(said)) or sys.exit(0)
for name, code in marshal.loads(said):
    module = sys.modules[name] = type(sys)(name)
    exec(code, module.__dict__)
sys.exit(module.main(*sys.argv[3:]))"""


@functools.cache
def modules() -> bytes:
    """What the program reads first; it is run by the same Python, which knows its own code."""
    empty = compile("", "<package>", "exec")
    parents = [(__package__.partition(".")[0], empty), (__package__, empty)]
    return marshal.dumps([*parents, *((name, _code(name)) for name in _names())])


def _names() -> list[str]:
    return [f"{__package__}.{module}" for module in MODULES]


def _code(name: str) -> CodeType:
    """A module's code, from wherever this package was imported from; see `bootstrap`."""
    spec = importlib.util.find_spec(name)
    loader: Any = spec and spec.loader
    code = loader.get_code(name) if hasattr(loader, "get_code") else None
    if not isinstance(code, CodeType):
        raise NoGil(f"the code of {name} is not there")
    return code


def command(size: int, pid: int, state: GilState, rate: int) -> list[str]:
    """The words that start a watch on a process: bytes of its modules, looks each second.

    Raises:
        NoGil: what runs here is no Python that could be started.
    """
    if getattr(sys, "frozen", False):  # as PyInstaller makes it: it would run the program again
        raise NoGil("this program was made into one that is its own Python")
    numbers = map(str, (size, pid, state.holder, state.ident, rate))
    return [sys.executable, "-I", "-S", "-c", _BOOT, "stageprof-watch", *numbers, spy()]
