"""Which user line made which layer or key, as the client noted it."""

from __future__ import annotations

from typing import NamedTuple

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
        columns = (table[n].tolist() for n in ("name", "file", "line", "prefix"))
        for name, file, line, prefix in zip(*columns, strict=True):
            into = self._prefixes if prefix else self._names
            into.setdefault(strings[name], Line(strings[file], line))

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

        Fusing joins names ("filter-count-part-1a2b"), so where a name is unknown the longest
        known beginning of it stands for it.
        """
        found = self._names.get(name) or self._prefixes.get(name)
        while found is None and name:
            name = name.rpartition("-")[0]
            found = self._names.get(name) or self._prefixes.get(name)
        return found or UNKNOWN
