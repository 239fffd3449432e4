"""Replacing an attribute, with an undo that leaves the owner as it was."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from stageprof_runtime.batch import Row
from stageprof_runtime.clock import now_ns
from stageprof_runtime.guard import Watch
from stageprof_runtime.lookup import give_back, keep
from stageprof_runtime.shield import shield
from stageprof_runtime.tree import Spot

#: Takes away again what a probe installed; calling it twice does nothing more.
Undo = Callable[[], None]


class Emit(Protocol):
    """What a probe gets to emit with; `role` says which part of the process the event is of."""

    def row(self, role: str, row: Row) -> None:
        """Append one row."""

    def row_of(self, role: str, name: str, row: Row) -> None:
        """The same for one of several workers in this process, by its address."""

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
        """Append a span of the calling thread, whose clock said `cpu`; short ones are summed."""

    def share(
        self, role: str, step: int, name: str, count: int, ns: int, nbytes: int, t: int = 0
    ) -> None:
        """Add what of a step was for the tasks of one layer; a long one by itself, ended at `t`."""

    def stack(self, role: str, name: str, label: str, how: str, entry: str, ns: int) -> None:
        """Add a look at a task of a prefix: the user's line, the kind of work, its share."""

    def flame(
        self, role: str, step: int, name: str, how: str, stack: Sequence[Spot], ns: int
    ) -> None:
        """Add a look at a stack while a step was done, for a task of prefix `name` or ""."""

    def native(self, stack: Sequence[Spot], looks: Sequence[tuple[int, int, int]]) -> None:
        """Add looks at a task's stack that has its C frames: start, stop and thread of each."""


#: A probe is one function: it installs itself and returns its undo.
Install = Callable[[Emit], Undo]

_MISSING = object()
#: Why a replacement that could not be taken away does nothing any more.
UNDONE: Final = "undone"

#: What is wrapped in this process, or was: name -> what is known of the wrapper.
wrapped: Final[dict[str, Watch]] = {}
#: Those that are wrapped now.
_titles: Final[set[str]] = set()


def wrappers() -> list[Watch]:
    """Those in this process whose own time is known, beside that of what is wrapped."""
    return [watch for watch in tuple(wrapped.values()) if watch.wrapper and watch.limited]


class _Layer:
    """One replacement: what it put there, and what stood there before."""

    def __init__(self, ours: Any, old: Any) -> None:
        self.ours = ours
        self.old = old
        self.over = False
        self._gone: Any = None

    def end(self) -> None:
        """It is over, and kept no longer than somebody may put back what it put there."""
        self.over, key = True, id(self.ours)
        with contextlib.suppress(TypeError):  # class methods have no weak references
            self._gone = weakref.ref(self.ours, lambda _: _layers.pop(key, None))
            self.ours = None


#: id of what was put somewhere -> its layer, from its installation until it is gone
_layers: Final[dict[int, _Layer]] = {}

#: Undos of what is being installed; if that fails half-way, what was done is taken back.
_journal: list[Undo] | None = None


def replace(owner: Any, name: str, make: Callable[[Any], Any], *, limited: bool = True) -> Undo:
    """Set `owner.name` to `make(what stands there)`; the undo puts the very same object back.

    What stands in the owner's `__dict__` is kept raw, so that class methods, static methods and
    cached properties return as they were. Replacements of ours may be undone in any order. If
    somebody else replaced the attribute after us, the undo leaves theirs alone, and ours does
    nothing any more. What `make` made is behind a shield: its failures harm nobody. It may take a
    fifth of the time unless it is not `limited`: where it has another budget, or awaits things.
    """
    return observe(owner, name, lambda raw, watch: shield(raw, make, watch), limited=limited)


def observe(
    owner: Any, name: str, make: Callable[[Any, Watch], Any], *, limited: bool = True
) -> Undo:
    """The same without a shield, which costs more than what is done behind it for each task.

    What `make` makes of a function guards its own work; see `caught`.
    """

    def read() -> Any:
        return vars(owner).get(name)

    def write(value: Any) -> None:
        if value is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, value)

    _clear(read, write)
    raw = vars(owner).get(name, _MISSING)
    title = f"{getattr(owner, '__qualname__', None) or owner.__name__}.{name}"
    watch = _watched(title, limited=limited)
    ours = make(getattr(owner, name) if raw is _MISSING else raw, watch)
    keep(owner, name, raw, ours)
    write(ours)
    return _undo(_Layer(ours, raw), read, write, watch)


def replace_item(mapping: dict[Any, Any], key: object, make: Callable[[Any], Any]) -> Undo:
    """The same for an entry of a dict; an entry that is missing is left missing."""
    return observe_item(mapping, key, lambda old, watch: shield(old, make, watch))


def observe_item(mapping: dict[Any, Any], key: object, make: Callable[[Any, Watch], Any]) -> Undo:
    """The same without a shield."""
    if key not in mapping:
        return lambda: None
    read = functools.partial(mapping.get, key)
    write = functools.partial(mapping.__setitem__, key)
    _clear(read, write)
    watch = _watched(f"handler {getattr(key, '__name__', key)}")
    old = mapping[key]
    ours = mapping[key] = make(old, watch)
    return _undo(_Layer(ours, old), read, write, watch)


def _watched(title: str, *, limited: bool = True) -> Watch:
    """A watch of its own for each wrapper, also where two stand in the same place."""
    name, number = title, 1
    while name in _titles:
        number += 1
        name = f"{title} ({number})"
    _titles.add(name)
    watch = wrapped[name] = Watch(name, wrapper=True, limited=limited)
    return watch


def _undo(
    layer: _Layer, read: Callable[[], Any], write: Callable[[Any], None], watch: Watch
) -> Undo:
    _layers[id(layer.ours)] = layer

    def undo() -> None:
        if layer.over:
            _clear(read, write)
            return
        watch.ended = now_ns()
        _titles.discard(watch.name)
        if read() is not layer.ours:
            watch.disabled = watch.disabled or UNDONE
        layer.end()
        _clear(read, write)

    return noted(undo)


def _clear(read: Callable[[], Any], write: Callable[[Any], None]) -> None:
    """Take away layers that are over: they had to wait for what stood upon them.

    That may have been somebody else's, who put ours back in the end. Under every new layer one more
    would stand.
    """
    top = read()
    while (here := _layers.get(id(top))) is not None and here.over:
        del _layers[id(top)]
        top = here.old
        write(top)
        give_back(top)


def noted(undo: Undo) -> Undo:
    """An undo that is done too if what is being installed fails half-way."""
    if _journal is not None:
        _journal.append(undo)
    return undo


@contextmanager
def journal() -> Iterator[None]:
    """Take back all replacements made within the block if it fails."""
    global _journal  # noqa: PLW0603 (the lock of `process` is held)
    before, _journal = _journal, []
    made = _journal
    try:
        yield
    except BaseException:
        together(made)()
        raise
    finally:
        _journal = before


def together(undos: list[Undo]) -> Undo:
    """One undo for many, in the opposite order; all are tried, the first error is raised."""

    def undo() -> None:
        errors: list[BaseException] = []
        while undos:
            try:
                undos.pop()()
            except BaseException as error:
                errors.append(error)
        if errors:
            raise errors[0]

    return undo
