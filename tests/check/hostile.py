"""Objects whose methods raise and tell that they were called."""

from __future__ import annotations

from typing import Any

CALLED: list[str] = []


def _hostile(name: str) -> Any:
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        CALLED.append(name)
        raise RuntimeError(name)

    return called


NAMES = (
    "__reduce__", "__reduce_ex__", "__sizeof__", "__repr__", "__str__", "__eq__", "__len__",
    "__bool__", "__hash__", "__iter__", "__getstate__", "__contains__", "__format__", "__dir__",
)  # fmt: skip

Hostile = type("Hostile", (), {name: _hostile(name) for name in NAMES})


class Large(Hostile):  # type: ignore[misc,valid-type]
    """One that is worth looking at."""

    def __init__(self) -> None:
        self.text = "x" * 20_000_000
        self.parts = [Hostile() for _ in range(3)]
        self.me = self


def use(*args: Any, **kwargs: Any) -> int:
    """Take anything."""
    return 1
