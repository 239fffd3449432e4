"""Whether an object is the one that was seen before, without keeping it alive.

By a weak reference where there can be one; else by what tells a value from another of its class
that was made later at the same address.
"""

from __future__ import annotations

import weakref
from typing import Any

#: Characters of a text that tell it from another of its length, at either end.
_SAMPLED = 16


class Identity:
    """An object, told from a later one at its address."""

    __slots__ = ("_features", "_ref")

    def __init__(self, value: object) -> None:
        self._features: object = None
        self._ref: Any = None
        try:
            self._ref = weakref.ref(value)
        except TypeError:
            self._features = _features(value)

    def is_of(self, value: object) -> bool:
        """Whether it is this object, of those at its address."""
        if self._ref is not None:
            return self._ref() is value
        return self._features == _features(value)


def _features(value: Any) -> object:
    """What tells a value from another of its class, without a reference to anything in it."""
    kind = type(value)
    if kind in (str, bytes):
        return kind, len(value), value[:_SAMPLED], value[-_SAMPLED:]
    if kind in (list, tuple) and value:
        return kind, len(value), id(value[0]), id(value[-1])
    if kind in (dict, set, frozenset):
        return kind, len(value), id(next(iter(value), None))
    return kind, 0
