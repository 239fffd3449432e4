"""What stageprof has installed in this process: rings by role, probes counted by use.

One process can play several roles (`LocalCluster` puts client and scheduler together) and serve
several sessions; probes are installed once, and what they emit goes to every ring of the role.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from threading import get_ident
from typing import Final, TypeVar

from stageprof_runtime.batch import Row
from stageprof_runtime.event import NATIVE
from stageprof_runtime.guard import logged, untold
from stageprof_runtime.interrupts import interrupted
from stageprof_runtime.patch import Install, Undo, journal
from stageprof_runtime.ring import Ring
from stageprof_runtime.tree import Spot

K = TypeVar("K")


class _Emitter:
    """Hands rows to the rings of a role; with none of that role, to the first of each session.

    A worker that runs a client inside a task has client events but no client: they go into the
    worker's own recording. A process has one GIL, whatever roles it plays.
    """

    def row(self, role: str, row: Row) -> None:
        for ring in _rings.get(role) or _fallback:
            ring.emit(row)

    def row_of(self, role: str, name: str, row: Row) -> None:
        """The same for one of several of a role, by what it joined as."""
        for ring in _named.get((role, name)) or _rings.get(role) or _fallback:
            ring.emit(row)

    def span(
        self,
        role: str,
        step: int,
        start: int,
        stop: int,
        label: object = "",
        nbytes: int = 0,
        cpu: int = 0,
    ) -> None:
        ns = stop - start
        for ring in _rings.get(role) or _fallback:
            try:
                total = ring.sums.known[step if ns < ring.short_ns else -1]  # what is long: none
            except KeyError:
                ring.span(step, start, stop, get_ident(), label, nbytes, cpu)
                continue
            # What `Ring.span` does: two calls for each of a task's steps would be too many.
            total[0] += 1
            total[1] += ns
            total[2] += nbytes

    def share(
        self, role: str, step: int, name: str, count: int, ns: int, nbytes: int, t: int = 0
    ) -> None:
        for ring in _rings.get(role) or _fallback:
            try:
                total = ring.shares.known[t or step, name]  # what has an end is in no sum
            except KeyError:
                ring.share(step, name, count, ns, nbytes, t)
                continue
            total[0] += count
            total[1] += ns
            total[2] += nbytes

    def stack(self, role: str, name: str, label: str, how: str, entry: str, ns: int) -> None:
        for ring in _rings.get(role) or _fallback:
            ring.stack(name, label, how, entry, ns)

    def flame(
        self, role: str, step: int, name: str, how: str, stack: Sequence[Spot], ns: int
    ) -> None:
        """Add a look at a stack to the recordings of a role; see `Ring.flame`."""
        for ring in _rings.get(role) or _fallback:
            ring.flame(step, name, how, stack, ns)

    def native(self, stack: Sequence[Spot], looks: Sequence[tuple[int, int, int]]) -> None:
        """Add looks at a stack with C frames; see `event.NATIVE`. They go where `flame` goes."""
        for ring in _rings.get("worker") or _fallback:
            node = ring.place(stack)
            for look in looks:
                ring.emit((NATIVE, *look, node))


EMIT: Final = _Emitter()

_lock = threading.RLock()
#: role -> the first ring of each session: of several workers in one process one is told
_rings: dict[str, list[Ring]] = {}
#: (role, name) -> the rings of those
_named: dict[tuple[str, str], list[Ring]] = {}
#: what joined, in order: session (or the ring itself, of none), role, name and ring
_joined: list[tuple[object, str, str, Ring]] = []
#: the first ring of each session
_fallback: list[Ring] = []
_probes: dict[Install, tuple[int, Undo]] = {}
#: What a probe has to tell (the ring of) a session that begins while it is installed for others; it
#: goes with it.
again: Final[dict[Install, Callable[[Ring], None]]] = {}
#: Probes that could not be installed here: name -> why.
failed: Final[dict[str, str]] = {}


def join(
    role: str, ring: Ring, probes: Sequence[Install], session: str = "", name: str = ""
) -> Undo:
    """Send the events of a role to this ring, and keep these probes installed until undone.

    Args:
        role: "client", "scheduler" or "worker".
        ring: of what plays it.
        probes: what is to be installed.
        session: of which it is; another ring of the same session and role gets only what is
            emitted by name.
        name: the address of a worker.
    """
    joined = session or ring, role, name, ring
    undoing = ExitStack()
    with _lock, undoing:  # a user's Ctrl-C may come at any time: nothing stays then
        if not _joined:  # what recordings before had to tell is theirs
            logged.clear()
            untold.clear()
            failed.clear()
        undoing.callback(_part, joined)
        _joined.append(joined)
        _sort()
        first = next(r for known, _, _, r in _joined if known == joined[0])
        for probe in probes:
            if _install(probe, first):
                undoing.callback(_uninstall, probe)
        undo = undoing.pop_all()

    def leave() -> None:
        with _lock:
            undo.close()  # with the ring still there: some probes tell their last now

    return leave


def _part(joined: tuple[object, str, str, Ring]) -> None:
    if joined in _joined:
        _joined.remove(joined)
    _sort()


def _sort() -> None:
    """Who gets what, from who has joined. Lists are put in place whole: hooks read them."""
    firsts: dict[object, Ring] = {}
    by_role: dict[tuple[object, str], Ring] = {}
    named: dict[tuple[str, str], list[Ring]] = {}
    for session, role, name, ring in _joined:
        firsts.setdefault(session, ring)
        by_role.setdefault((session, role), ring)
        named.setdefault((role, name), []).append(ring)
    roles: dict[str, list[Ring]] = {}
    for (_, role), ring in by_role.items():
        roles.setdefault(role, []).append(ring)
    _put(_rings, roles)
    _put(_named, named)
    _fallback[:] = firsts.values()


def _put(kept: dict[K, list[Ring]], new: dict[K, list[Ring]]) -> None:
    kept.update(new)
    for gone in set(kept) - set(new):
        del kept[gone]


def share(probe: Install) -> Undo:
    """Keep one probe installed until undone; several sessions share it."""
    with _lock:
        there = _install(probe)
    left = not there

    def leave() -> None:
        nonlocal left
        with _lock:
            if not left:
                left = True
                _uninstall(probe)

    return leave


def uses(probe: Install) -> int:
    """How many of this process's sessions keep a probe installed."""
    return _probes[probe][0] if probe in _probes else 0


def is_first(ring: Ring) -> bool:
    """Whether this is the ring of a session that gets what the process itself has to tell."""
    return any(first is ring for first in _fallback)


def has(role: str) -> bool:
    """Whether this process plays the role in some session."""
    return role in _rings


def installed() -> list[str]:
    """Names of what is installed in this process now; empty when nothing is being recorded."""
    with _lock:
        return [f"ring:{role}" for role in _rings] + [_name(probe) for probe in _probes]


def _name(probe: Install) -> str:
    name = getattr(probe, "__name__", type(probe).__name__)
    return f"{probe.__module__.rpartition('.')[2]}.{name}"


def _install(probe: Install, first: Ring | None = None) -> bool:
    """Whether it is there now; if it was before, `first` (of a session) is told what it missed."""
    uses, undo = _probes.get(probe, (0, None))
    if undo is None:
        try:
            with journal():
                undo = probe(EMIT)
        except BaseException as error:
            # A version of Dask without this place: the program goes on, coverage says so.
            _failed(probe, error)
            return False
        failed.pop(_name(probe), None)
    elif probe in again and first is not None:
        try:
            again[probe](first)
        except BaseException as error:  # what it missed is missing; it is there all the same
            _failed(probe, error)
    _probes[probe] = (uses + 1, undo)
    return True


def _uninstall(probe: Install) -> None:
    uses, undo = _probes[probe]
    if uses > 1:
        _probes[probe] = (uses - 1, undo)
        return
    del _probes[probe]
    again.pop(probe, None)
    try:
        undo()
    except BaseException as error:
        _failed(probe, error, "undo: ")


def _failed(probe: Install, error: BaseException, doing: str = "") -> None:
    """Note it; a user's Ctrl-C goes on."""
    if interrupted(error):
        raise error
    try:
        failed[_name(probe)] = f"{doing}{error!r}"[:200]
    except Exception:  # it cannot even say what it is
        failed[_name(probe)] = f"{doing}{type(error).__name__}"


def _after_fork() -> None:
    """A forked child has none of the parent's shippers: its probes must not fill rings."""
    global _lock  # noqa: PLW0603 (another thread of the parent may have held it)
    _lock = threading.RLock()
    for *_, ring in _joined:
        ring.clear()
    _rings.clear()
    _named.clear()
    _joined.clear()
    _fallback.clear()
    again.clear()
    for probe in list(_probes):
        _probes.pop(probe)[1]()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

__all__ = ["EMIT", "failed", "has", "installed", "join", "share"]
