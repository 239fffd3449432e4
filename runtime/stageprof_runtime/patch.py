"""Replacing an attribute, with an undo that leaves the owner as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from stageprof_runtime.batch import Row
from stageprof_runtime.guard import Watch
from stageprof_runtime.shield import shield

#: Takes away again what a probe installed; calling it twice does nothing more.
Undo = Callable[[], None]


class Emit(Protocol):
    """What a probe gets to emit with; `role` says which part of the process the event is of."""

    def row(self, role: str, row: Row) -> None:
        """Append one row."""

    def span(
        self, role: str, step: int, start: int, stop: int, label: object = "", nbytes: int = 0
    ) -> None:
        """Append a span of the calling thread; short ones are summed."""


#: A probe is one function: it installs itself and returns its undo.
Install = Callable[[Emit], Undo]

_MISSING = object()

#: What is wrapped in this process, or was: name -> what is known of the wrapper.
wrapped: Final[dict[str, Watch]] = {}


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> Undo:
    """Set `owner.name` to `make(what stands there)`; the undo puts the very same object back.

    What stands in the owner's `__dict__` is kept raw, so that class methods, static methods and
    cached properties return as they were. If somebody replaced the attribute after us, the undo
    leaves theirs alone. What `make` made is behind a shield: its failures harm nobody.
    """
    raw = vars(owner).get(name, _MISSING)
    watch = wrapped[_title(owner, name)] = Watch(_title(owner, name))
    ours = shield(getattr(owner, name) if raw is _MISSING else raw, make, watch)
    setattr(owner, name, ours)
    done = False

    def undo() -> None:
        nonlocal done
        if done or vars(owner).get(name) is not ours:
            return
        done = True
        if raw is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, raw)

    return undo


def _title(owner: Any, name: str) -> str:
    """What a wrapped attribute is called in warnings: "Client._gather", "dask.order.order"."""
    return f"{getattr(owner, '__qualname__', None) or owner.__name__}.{name}"


def replace_item(mapping: dict[Any, Any], key: object, make: Callable[[Any], Any]) -> Undo:
    """The same for an entry of a dict; an entry that is missing is left missing."""
    if key not in mapping:
        return lambda: None
    old = mapping[key]
    watch = wrapped[f"handler {key}"] = Watch(f"handler {key}")
    ours = mapping[key] = shield(old, make, watch)

    def undo() -> None:
        if mapping.get(key) is ours:
            mapping[key] = old

    return undo


def together(undos: list[Undo]) -> Undo:
    """One undo for many, in the opposite order; all are tried, the first error is raised."""

    def undo() -> None:
        errors = []
        while undos:
            try:
                undos.pop()()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    return undo
