"""How many Python objects are in a value, about: each is pickled by itself.

Told from types, attributes and a sample of elements; no code of the user's is run.
"""

from __future__ import annotations

from typing import Any, Final

from stageprof_runtime.kinds import ATOM, CONTAINER, CUSTOM, DATA, attributes, kind_of
from stageprof_runtime.weight import buffers

#: Elements of a container that stand for all of it, levels that are followed, values in all.
_SAMPLED, _DEPTH, _MOST = 8, 8, 2_000
#: By these a class has its own way to be pickled; how long that takes, nobody can tell.
_OWN: Final = frozenset({"__reduce__", "__reduce_ex__", "__getstate__", "__getnewargs_ex__"})


class Census:
    """One count."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._left = _MOST
        #: whether a class in it has its own way to be pickled
        self.own = False

    def count(self, value: Any, depth: int = _DEPTH) -> int:
        """Objects of classes in a value, itself included; numbers and texts count for nothing."""
        kind = kind_of(value)
        if kind == ATOM or depth <= 0 or self._left <= 0 or id(value) in self._seen:
            return 0
        if kind == CONTAINER:
            self._enter(value)
            return self._container(value, depth)
        if kind not in (CUSTOM, DATA) or buffers(value) is not None:
            return 0
        self._enter(value)
        self.own = self.own or has_own_way(type(value))
        return 1 + sum(self.count(part, depth - 1) for part in attributes(value).values())

    def _enter(self, value: object) -> None:
        self._seen.add(id(value))
        self._left -= 1

    def _container(self, value: Any, depth: int) -> int:
        if not value:
            return 0
        parts = list(value.values()) if type(value) is dict else list(value)
        step = max(1, len(parts) // _SAMPLED)
        some = parts[::step]
        return sum(self.count(part, depth - 1) for part in some) * len(parts) // len(some)


def has_own_way(cls: type) -> bool:
    """Whether a class, or one that it is derived from, says itself how it is pickled."""
    bases = type.__dict__["__mro__"].__get__(cls)
    return any(not _OWN.isdisjoint(base.__dict__) for base in bases if base is not object)
