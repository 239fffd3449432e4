"""An exception whose class does not tell what it is called."""

from __future__ import annotations


class OddMeta(type):
    """Its classes raise where they are asked for their name."""

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise SystemExit


class Odd(Exception, metaclass=OddMeta):
    """One of those."""
