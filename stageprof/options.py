"""What the caller of a recording may choose: declared once, for Python, commands and the magic.

A field of `Options` is a choice. Its name is what `stageprof.profile` calls it, its flags are what
is typed, and the faces that have it are named beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from enum import Flag, auto
from typing import Any, Final, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

#: How often a cell may be run again.
MOST_REPEATS: Final = 100


class Face(Flag):
    """Where a choice can be made."""

    API = auto()
    COMMAND = auto()
    MAGIC = auto()
    TYPED = COMMAND | MAGIC
    ALL = API | COMMAND | MAGIC


_RULE: Final = "Leave a rule out, or RULE.LIMIT=0.1."
#: The option of commands that ask the rules of what was recorded before.
ruled: Final = click.option("--rule", "rules", multiple=True, metavar="RULE=off", help=_RULE)


def choice(flags: str, text: str, face: Face, *, default: Any = None, **how: Any) -> Any:
    """A field of `Options`.

    Args:
        flags: as they are typed, with blanks between them.
        text: what it does, in a line.
        face: who has it.
        default: what holds if nothing is said.
        how: what click must know besides.
    """
    return field(default=default, metadata={"flags": flags, "help": text, "face": face, "how": how})


@dataclass(frozen=True)
class Options:
    """What was chosen."""

    path: str | None = choice("-o --output", "The recording.", Face.ALL, metavar="FILE")
    report: str | None = choice(
        "--report --html", "Write all pages of the app there, too.", Face.TYPED, metavar="FILE"
    )
    label: str | None = choice("--name", "What the recording is called.", Face.ALL, metavar="NAME")
    check: bool = choice(
        "--check", "Say what would be slow; nothing is computed.", Face.MAGIC, default=False
    )
    repeat: int = choice(
        "--repeat", "Run it so often; shows the run in the middle.", Face.MAGIC,
        default=1, metavar="N", type=click.IntRange(1, MOST_REPEATS),
    )  # fmt: skip
    deterministic: bool = choice(
        "--deterministic", "Count every call; docs/profiles.md.", Face.ALL, default=False
    )
    gil: bool = choice(
        "--gil/--no-gil", "Watch who holds the GIL; docs/gil.md.", Face.ALL, default=True
    )
    native: bool = choice(
        "--native",
        "C frames of tasks, which pauses them; docs/profiles.md.",
        Face.ALL,
        default=False,
    )
    rules: tuple[str, ...] = choice(
        "--rule",
        _RULE,
        Face.TYPED,
        default=(),
        metavar="RULE=off",
        multiple=True,
    )
    quiet: bool = choice("-q --quiet", "Record, and show nothing.", Face.TYPED, default=False)

    @property
    def recorded(self) -> dict[str, Any]:
        """What `stageprof.profile` is told."""
        return {each.name: getattr(self, each.name) for each in _of(Face.API)}


def complaint(error: click.ClickException) -> str:
    """What is wrong with what was typed, in a line."""
    return " ".join(error.format_message().split()).rstrip(".")


def typed(face: Face) -> Callable[[Decorated], Decorated]:
    """Gives a command the options that a face has, in the order of the table."""

    def decorate(command: Decorated) -> Decorated:
        for each in reversed(_of(face)):
            command = click.option(*_declared(each), **_how(each))(command)
        return command

    return decorate


def valued(face: Face) -> tuple[str, ...]:
    """The flags of a face that take the next word."""
    return tuple(
        flag
        for each in _of(face)
        if not isinstance(each.default, bool)
        for flag in each.metadata["flags"].split()
    )


def _of(face: Face) -> list[Field[Any]]:
    return [each for each in fields(Options) if each.metadata["face"] & face]


def _declared(each: Field[Any]) -> tuple[str, ...]:
    return (each.name, *each.metadata["flags"].split())


def _how(each: Field[Any]) -> dict[str, Any]:
    how: dict[str, Any] = {"help": each.metadata["help"], **each.metadata["how"]}
    if isinstance(each.default, bool):
        how["is_flag"] = True
    return how if how.get("multiple") else how | {"default": each.default}


__all__ = ["Face", "Options", "complaint", "typed", "valued"]
