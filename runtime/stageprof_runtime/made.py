"""Which of the user's lines made which name: of layers, expressions and keys.

Most prefixes are made at one line only, so a prefix is stored once with its first line, and only
names that were made elsewhere are stored one by one: 100,000 `delayed` calls in a loop are one
row.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import NamedTuple

from stageprof_runtime.event import LINE
from stageprof_runtime.lines import is_users
from stageprof_runtime.patch import Emit
from stageprof_runtime.ring import Ring

#: Names kept apart from their prefix; beyond this the prefix's line stands for them. And prefixes:
#: a name without a token is its own.
MOST = 100_000

Line = tuple[str, int]

#: Dashes in a UUID and before it.
_UUID_DASHES = 5
#: The length of a UUID and the dash before it, and of an MD5 sum in hexadecimal digits.
_UUID, _MD5 = 37, 33


class _Site(NamedTuple):
    """The instruction of the user's that makes the names of a stem, so many frames out."""

    code: CodeType
    at: int
    depth: int


class Lines:
    """Which line made which name, and what of it has been emitted."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._prefix: dict[str, Line] = {}
        self._name: dict[str, Line] = {}
        #: names made at their prefix's line
        self._first: set[str] = set()
        #: what an optimizer made -> the user's expression that it was made from
        self._origins: dict[str, str] = {}
        #: stem -> where the last of its names was made, if at their prefix's line
        self._sites: dict[str, _Site] = {}

    def again(self, name: str) -> bool:
        """Whether the caller's caller makes a name where others of its stem were made.

        So does a loop of `delayed` calls; to find the user's line anew for each takes three times
        as long.
        """
        site = self._sites.get(stem_of(name))
        if site is None:
            return False
        try:
            frame = sys._getframe(site.depth)
        except ValueError:  # there are fewer frames
            return False
        if frame.f_lasti != site.at or frame.f_code is not site.code:
            return False
        if len(self._first) < MOST:
            self._first.add(name)
        return True

    def made_from(self, name: str, frame: FrameType, line: Line) -> None:
        """The same as `made`, by a function whose frame this is: others of its stem may follow."""
        self.made(name, line)
        prefix, stem = prefix_of(name), stem_of(name)
        if self._prefix.get(prefix) == line and stem[:-1] == prefix:
            self._sites[stem] = _site(frame)

    def made(self, name: object, line: Line) -> None:
        """A layer, expression or key of this name was made at this line."""
        if not isinstance(name, str) or name in self._first or name in self._name or not line[0]:
            return
        prefix = prefix_of(name)
        if len(self._prefix) >= MOST and prefix not in self._prefix:
            return
        known = self._prefix.setdefault(prefix, line)  # two threads may make it at once
        if known is line:
            self._emit.row("client", (LINE, prefix, *line, 1))
        if known == line:
            if len(self._first) < MOST:
                self._first.add(name)
        elif len(self._name) < MOST:
            self._name[name] = line
            self._emit.row("client", (LINE, name, *line, 0))

    def derived(self, name: str, other: str) -> None:
        """An optimizer made an expression from another, which it may have made as well."""
        if other and len(self._origins) < MOST:
            self._origins.setdefault(name, self._origins.get(other, other))

    def origin_of(self, name: str) -> str:
        """The name of the user's expression from which an optimizer made this one; or its own."""
        return self._origins.get(name, name)

    def together(self, keys: Iterable[object], line: Line) -> None:
        """Keys that were handed over together: what they have in common stands for them.

        Where tasks of their name were made at another line they are told one by one, unless they
        have a token in common.
        """
        for key in keys:
            name = common(key)
            if name and self._prefix.get(prefix_of(name)) != line:
                self.made(name, line)

    def tell(self, ring: Ring) -> None:
        """Tell a session that has just begun: prefixes, then names, of both the last that fit.

        Half of its ring is left for what happens until the first batch goes.
        """
        half = max(1, ring.room() // 2)
        prefixes, names = tuple(self._prefix.items())[-half:], tuple(self._name.items())
        room = half - len(prefixes)
        for known, prefix in ((names[-room:] if room else (), 0), (prefixes, 1)):
            for name, line in known:
                ring.emit((LINE, name, *line, prefix))

    def known(self, name: str) -> bool:
        """Whether it is made again of the same parts: by persisting, rebuilding, rewriting."""
        return name in self._first or name in self._name

    def of(self, name: str) -> Line:
        """The line that made a name; ("", 0) if unknown."""
        known = self._name.get(name)
        return known or self._prefix.get(prefix_of(name), ("", 0))


#: The lines of this process, once for each probe that notes them: what one has emitted another
#: need not.
_shared: list[Lines] = []


def shared(emit: Emit) -> Lines:
    """The lines that all probes of this process note together, until each has called `forget`."""
    _shared.append(_shared[0] if _shared else Lines(emit))
    return _shared[0]


@contextmanager
def noting(emit: Emit) -> Iterator[Lines]:
    """The same for a probe that is being installed: if that fails, it notes none."""
    try:
        yield shared(emit)
    except BaseException:
        forget()
        raise


def known() -> Lines | None:
    """The same; None while no probe notes any."""
    return _shared[0] if _shared else None


def forget() -> None:
    """One probe notes them no more."""
    _shared.pop()


def stem_of(name: str) -> str:
    """A name without the characters of its token, be that an MD5 sum or a UUID."""
    return name[: 1 - _MD5] if name[-_MD5 : 1 - _MD5] == "-" else name[: 1 - _UUID]


def _site(caller: FrameType) -> _Site:
    """Where the user's line is, from a function that `caller` calls and that calls `again`."""
    frame, depth = caller, 2
    while not is_users(frame) and frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return _Site(frame.f_code, frame.f_lasti, depth)


def prefix_of(name: str) -> str:
    """A name without its token: 32 hexadecimal digits, a UUID, or what follows the last dash."""
    if name[-_MD5 : 1 - _MD5] == "-":
        return name[:-_MD5] or name
    if name[-_UUID : 1 - _UUID] == "-" and name.count("-", len(name) - _UUID) == _UUID_DASHES:
        return name[:-_UUID] or name
    return name.rpartition("-")[0] or name


def common(key: object) -> str:
    """What a key shares with those made in one call: it may only number them; "" if no name."""
    name = key[0] if type(key) is tuple and key else key
    if type(name) is not str:
        return ""
    stem, _, number = name.rpartition("-")
    return stem if number.isdigit() and len(prefix_of(stem)) == len(stem) - _UUID else name
