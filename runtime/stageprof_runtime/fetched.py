"""Results that clients of this process have fetched, known by identity while they are there.

A graph may take them back to the workers: whoever names what is in a graph asks here. And the lines
of the program that fetched, which are told when the recording ends.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, Final, NamedTuple

from stageprof_runtime.identity import Identity
from stageprof_runtime.kinds import ATOM, CONTAINER, FUNCTION, kind_of
from stageprof_runtime.kinship import parent
from stageprof_runtime.lines import user_line

#: Results remembered, the latest; and elements of a container that are looked at.
MOST: Final = 2000
ELEMENTS: Final = 8
#: Calls that fetch from one line from which on it is told, and lines that are told at most.
LEAST, LINES = 3, 100


class _Kept(NamedTuple):
    """A result."""

    identity: Identity
    key: object


class Fetched:
    """Which objects were fetched, and of which keys they are the results."""

    def __init__(self) -> None:
        self._kept: dict[int, _Kept] = {}
        #: how many calls of each of the user's lines have fetched
        self._calls: Counter[tuple[str, int]] = Counter()

    def __bool__(self) -> bool:
        return bool(self._kept)

    def note(self, results: Mapping[Any, object]) -> None:
        """Results by their keys have come."""
        for key, value in itertools.islice(results.items(), MOST):
            if kind_of(value) not in (ATOM, FUNCTION):
                if len(self._kept) >= MOST:
                    self._kept.pop(next(iter(self._kept)), None)
                self._kept[id(value)] = _Kept(Identity(value), key)

    def call(self, frame: FrameType) -> None:
        """A call from here has fetched."""
        self._calls[user_line(frame)] += 1

    def told(self) -> Iterator[str]:
        """For each line that has fetched several times "calls file:line"."""
        for (file, line), calls in self._calls.most_common(LINES):
            if calls >= LEAST and file:
                yield f"{calls} {file}:{line}"

    def key_of(self, value: Any) -> object:
        """The key of which a value is the result, a view of it, or a container of some; or None."""
        if not self._kept:
            return None
        found = self._own(value)
        if found is None and kind_of(value) == CONTAINER:
            inside = value.values() if type(value) is dict else value
            keys = map(self._own, list(itertools.islice(inside, ELEMENTS)))
            found = next((key for key in keys if key is not None), None)
        return found

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()
        self._calls.clear()

    def _own(self, value: object) -> object:
        for same in (value, parent(value)):
            kept = self._kept.get(id(same))
            if kept is not None and kept.identity.is_of(same):
                return kept.key
        return None


#: Those of this process's clients.
fetched: Final = Fetched()
