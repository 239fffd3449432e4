"""Which user line made which layer or key, as the client noted it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from stageprof_collectors.storage.key import MAX_KEY
from stageprof_collectors.storage.store import Store


class Line(NamedTuple):
    """A line of the user's code; ("", 0) if unknown."""

    file: str
    line: int


UNKNOWN = Line("", 0)
#: Expressions of Dask's own that hold the tasks of `client.map` and `client.submit`.
_WRAPPERS = ("_mapexpr", "llgexpr")


class Lines:
    """The lines of a recording by name and by prefix."""

    def __init__(self, store: Store) -> None:
        table, strings = store.table("line"), store.strings
        self._names: dict[str, Line] = {}
        self._prefixes: dict[str, Line] = {}
        #: the same by the place that told it
        self._told: dict[tuple[str, int], Line] = {}
        #: prefixes that one place made at another line than another one: a task that calls itself
        self.disputed: set[str] = set()
        columns = (table[n].tolist() for n in ("name", "file", "line", "prefix", "place"))
        for name, file, at, prefix, place in zip(*columns, strict=True):
            text, line = strings[name], Line(strings[file], at)
            into = self._prefixes if prefix else self._names
            if into.setdefault(text, line) != line and prefix:
                self.disputed.add(text)
            if prefix:
                self._told.setdefault((text, place), line)

    def first_names(self) -> dict[str, str]:
        """For each line, as "file:line", the first name that it made; of layers and keys only."""
        found: dict[str, str] = {}
        for table in (self._prefixes, self._names):
            for name, line in table.items():
                if not name.startswith(_WRAPPERS):
                    found.setdefault(f"{line.file}:{line.line}", name)
        return found

    def of(self, name: str) -> Line:
        """The line that made a layer or key of this name.

        Where Dask fuses tasks it puts what the others are called, by the alphabet, before the
        whole name of the last: "getitem-rechunk-merge-1a2b" is of the layer "rechunk-merge-1a2b".
        Where no end of the name is known, the longest known beginning stands for it.
        """
        known = self._names.get(name) or self._prefixes.get(name)
        if known is not None:
            return known
        if len(name) > MAX_KEY:  # nobody's: its ends would take the square of its length
            return UNKNOWN
        stem = name.rpartition("-")[0]
        return self._prefixes.get(stem) or self._end(name) or self._beginning(stem) or UNKNOWN

    def handed_over(self, name: str, place: int) -> Line:
        """The same for what a place handed over: it has told of the prefix, or else of the name."""
        told = self._told.get((name.rpartition("-")[0], place))
        return self._names.get(name) or told or self.of(name)

    def _end(self, name: str) -> Line | None:
        """The line of the longest end that is a layer's, else of one without its token."""
        ends = list(_ends(name))
        for end in ends:
            if (found := self._names.get(end)) is not None:
                return found
        stems = (end.rpartition("-")[0] for end in ends)
        return next((self._prefixes[stem] for stem in stems if stem in self._prefixes), None)

    def _beginning(self, name: str) -> Line | None:
        found = None
        while found is None and name:
            found = self._names.get(name) or self._prefixes.get(name)
            name = name.rpartition("-")[0]
        return found


def _ends(name: str) -> Iterator[str]:
    """A name without its first word, without its first two, ...: as long as there are two left."""
    while "-" in (name := name.partition("-")[2]):
        yield name
