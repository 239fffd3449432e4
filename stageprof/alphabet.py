"""What a command prints, in letters that its output has."""

from __future__ import annotations

import sys

import click

__all__ = ["echo"]


def echo(text: object, *, nl: bool = True, err: bool = False) -> None:
    """Print a text; if the output's encoding lacks something in it, that becomes an escape.

    Args:
        text: any.
        nl: whether the line ends with it.
        err: to stderr.
    """
    stream = sys.stderr if err else sys.stdout
    click.echo(_written(str(text), stream), nl=nl, err=err)


def _written(text: str, stream: object) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding, getattr(stream, "errors", None) or "strict")
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text
