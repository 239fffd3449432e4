"""Whether an object is the one that was seen before, without keeping it alive.

By a weak reference where there can be one; else by what tells a value from another of its class
that was made later at the same address.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Iterator
from typing import Any

#: Characters of a text that tell it from another of its length, at either end.
_SAMPLED = 16
#: Values of a container that tell it from another of its length.
_FEW = 4


class Identity:
    """An object, told from a later one at its address."""

    __slots__ = ("_features", "_held", "_ref")

    def __init__(self, value: object) -> None:
        self._features: object = None
        self._ref: Any = None
        #: references to what is in it
        self._held: list[Any] = []
        try:
            self._ref = weakref.ref(value)
        except TypeError:
            self._features = _features(value)
            self._held = list(_references(value))

    def is_of(self, value: object) -> bool:
        """Whether it is this object, of those at its address."""
        if self._ref is not None:
            return self._ref() is value
        if any(held() is None for held in self._held):  # its place has been taken
            return False
        return self._features == _features(value)


def _features(value: Any) -> object:
    """What tells a value from another of its class, without a reference to anything in it."""
    kind = type(value)
    if kind in (str, bytes):
        return kind, len(value), value[:_SAMPLED], value[-_SAMPLED:]
    if kind in (list, tuple, dict, set, frozenset) and value:
        last = (id(value[-1]),) if kind in (list, tuple) else ()
        return kind, len(value), *map(id, _first(value)), *last
    return kind, 0


def _first(value: Any) -> list[Any]:
    """The first values in a container."""
    return list(itertools.islice(value.values() if type(value) is dict else value, _FEW))


def _references(value: Any) -> Iterator[Any]:
    """Weak ones to the first values in a container, as far as there can be any."""
    for held in _first(value) if type(value) in (list, tuple, dict, set, frozenset) else ():
        with contextlib.suppress(TypeError):
            yield weakref.ref(held)
