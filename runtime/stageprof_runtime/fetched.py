"""Results that clients of this process have fetched, known by identity while they are there.

A graph may take them back to the workers: whoever names what is in a graph asks here.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from stageprof_runtime.kinds import ATOM, CONTAINER, FUNCTION, kind_of
from stageprof_runtime.kinship import parent

#: Results remembered, the latest; and elements of a container that are looked at.
MOST: Final = 2000
ELEMENTS: Final = 8
#: Characters of a text that tell it from another of its length.
_SAMPLED: Final = 16


class _Kept(NamedTuple):
    """A result: a weak reference, or what tells it from a later object at its address."""

    ref: Any
    features: object
    key: object


class Fetched:
    """Which objects were fetched, and of which keys they are the results."""

    def __init__(self) -> None:
        self._kept: dict[int, _Kept] = {}

    def __bool__(self) -> bool:
        return bool(self._kept)

    def note(self, results: Mapping[Any, object]) -> None:
        """Results by their keys have come."""
        for key, value in itertools.islice(results.items(), MOST):
            if kind_of(value) not in (ATOM, FUNCTION):
                if len(self._kept) >= MOST:
                    self._kept.pop(next(iter(self._kept)), None)
                self._kept[id(value)] = _kept(value, key)

    def key_of(self, value: Any) -> object:
        """The key of which a value is the result, a view of it, or a container of some; or None."""
        if not self._kept:
            return None
        found = self._own(value)
        if found is None and kind_of(value) == CONTAINER:
            inside = value.values() if type(value) is dict else value
            keys = map(self._own, itertools.islice(inside, ELEMENTS))
            found = next((key for key in keys if key is not None), None)
        return found

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()

    def _own(self, value: object) -> object:
        for same in (value, parent(value)):
            kept = self._kept.get(id(same))
            if kept is not None and kept.ref is not None and kept.ref() is same:
                return kept.key
            if kept is not None and kept.ref is None and kept.features == _features(same):
                return kept.key
        return None


def _kept(value: object, key: object) -> _Kept:
    try:
        return _Kept(weakref.ref(value), None, key)
    except TypeError:
        return _Kept(None, _features(value), key)


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


#: Those of this process's clients.
fetched: Final = Fetched()
