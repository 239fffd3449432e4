"""The watch as a program: its modules' sources, and what a bare Python runs them with."""

from __future__ import annotations

import importlib.util
import sys
from typing import Final

from stageprof_runtime.gil.permission import spy
from stageprof_runtime.gil.state import GilState, NoGil

#: What the program is made of, each after what it imports.
MODULES: Final = ("messages", "looking", "spying", "watch")
#: Makes the modules that its input begins with and runs the last; looks for nothing on any path.
_BOOT: Final = """\
import os, sys
size, said = int(sys.argv[2]), b""
while len(said) < size:
    said += os.read(0, size - len(said)) or sys.exit(0)
for part in said.split(b"\\0"):
    name, _, source = part.decode().partition("\\n")
    module = sys.modules[name] = type(sys)(name)
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)
sys.exit(module.main(*sys.argv[3:]))"""


def sources() -> bytes:
    """What the program reads first."""
    top = __package__.partition(".")[0]
    names = [f"{__package__}.{module}" for module in MODULES]
    modules = {top: "", __package__: ""} | {name: _source(name) for name in names}
    return "\0".join(f"{name}\n{source}" for name, source in modules.items()).encode()


def _source(name: str) -> str:
    """A module's source, from wherever this package was imported from; see `bootstrap`."""
    spec = importlib.util.find_spec(name)
    get = getattr(spec and spec.loader, "get_source", None)
    found = get(name) if get is not None else None
    if not isinstance(found, str):
        raise NoGil(f"the source of {name} is not there")
    return found


def command(size: int, pid: int, state: GilState, rate: int) -> list[str]:
    """The words that start a watch on a process: bytes of its sources, looks each second."""
    numbers = map(str, (size, pid, state.holder, state.ident, rate))
    return [sys.executable, "-I", "-S", "-c", _BOOT, "stageprof-watch", *numbers, spy()]
