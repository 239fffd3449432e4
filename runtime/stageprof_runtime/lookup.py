"""Functions that are pickled by name are found by it, though one stands in another's place.

Pickle looks a function up where it says that it is, and takes nothing but the very same object. A
program may have imported Dask's own before a recording began, or ours while one goes on.
"""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any, Final

#: The way from a function to itself, and from a wrapper to what it wraps; it is there in processes
#: without stageprof, too.
_ITSELF: Final = ".__call__.__self__"


def keep(owner: Any, name: str, old: Any, ours: Any) -> None:
    """Have both found that are in a module: ours where it stands, and by way of it the old one."""
    if not (isinstance(owner, ModuleType) and type(old) is type(ours) is FunctionType):
        return
    wraps_ours = "__call__" in vars(old)
    at_home = (old.__module__, old.__qualname__) == (owner.__name__, name)
    ours.__module__, ours.__qualname__ = owner.__name__, name
    vars(ours)["__call__"] = old.__call__
    if at_home and not wraps_ours:
        old.__qualname__ += _ITSELF


def give_back(old: Any) -> None:
    """It stands in its place again, and is found there."""
    if type(old) is FunctionType and old.__qualname__.endswith(_ITSELF):
        old.__qualname__ = old.__qualname__.removesuffix(_ITSELF)
