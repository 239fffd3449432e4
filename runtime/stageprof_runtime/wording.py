"""How the parts of a graph are told to a user: calls, layers and keys as short texts."""

from __future__ import annotations

import re
from typing import Any, Final

from stageprof_runtime.kinds import ATOM, attributes, kind_of

#: What `client.map` is called here; its expression is private to distributed.
MAP: Final = "client.map"
#: Characters of a key of a dict that are shown.
_SHORT: Final = 40


def pairs(x: Any) -> list[tuple[str, Any]]:
    """Keyword arguments, from a dict or from the task that makes one."""
    if type(x) is dict:
        return [(short(key), value) for key, value in x.items()]
    args = attributes(x).get("args") if x is not None else None
    if type(args) is not tuple or len(args) % 2:
        return [("", x)]
    return [(short(args[i]), args[i + 1]) for i in range(0, len(args), 2)]


def call_of(name: str) -> str:
    """MapPartitions -> map_partitions: an expression is named after the method that makes it."""
    if name == "_MapExpr":
        return MAP
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def text_of(name: object) -> str:
    """The name of a layer; of keys given one by one that of the first."""
    if type(name) is list:
        name = name[0] if name else ""
    return str(name) if type(name) in (str, int, tuple) else ""


def short(key: object) -> str:
    """A key of a dict as text; of types that may be asked for it."""
    return (key if type(key) is str else repr(key) if kind_of(key) == ATOM else "...")[:_SHORT]
