"""What was typed after `%stageprof`: options, then a word of ours or code, which stays as it is."""

from __future__ import annotations

import re
import shlex
from typing import Final, NamedTuple

import click

from stageprof.options import Face, Options, complaint, typed, valued
from stageprof_runtime.errors import UsageError

#: Words that stand for something else than code.
ON, OFF, LAST, COMPARE = "on", "off", "last", "compare"
WORDS: Final = (ON, OFF, LAST, COMPARE)

#: A word as a shell takes it: blanks within quotes belong to it.
_WORD: Final = re.compile(r"""\s*((?:[^\s"']|"[^"]*"|'[^']*')+)""")
_VALUED: Final = valued(Face.MAGIC)


class Line(NamedTuple):
    """What was asked for."""

    options: Options
    #: one of `WORDS`, or ""
    word: str
    #: code of the line, or ""
    code: str


#: `\b` keeps click from joining the lines that follow it.
_HELP: Final = """Profile a line or a cell: where the time of its Dask computations goes.

\b
%stageprof [OPTIONS] CODE     profile the rest of the line; its value is the line's
%%stageprof [OPTIONS]         profile the cell below
%stageprof on [OPTIONS]       record from here on, across cells
%stageprof off                end that; gives the recording
%stageprof last               the last recording, for .findings(), .show() or .app()
%stageprof compare            the last one beside the one before

Code that begins with a dash comes after --, and a variable that is called like one of these words
in brackets: %stageprof (last).
"""


@click.command(add_help_option=False, options_metavar="[OPTIONS]", help=_HELP)
@typed(Face.MAGIC)
@click.option("-h", "--help", "wants_help", is_flag=True, help="Show this.")
def magic(**chosen: object) -> tuple[Options, bool]:
    """The options of a line, and whether help is wanted."""
    wants_help = bool(chosen.pop("wants_help"))
    return Options(**chosen), wants_help  # type: ignore[arg-type]


class HelpWanted(Exception):
    """`--help` was typed."""


def read(text: str) -> Line:
    """What a line asks for.

    Raises:
        UsageError: an option makes no sense.
        HelpWanted: the user asked for help.
    """
    head, rest = _split(text)
    first, _, after = rest.strip().partition(" ")
    if first in WORDS:
        more, rest = _split(after)
        if not rest.strip():
            return Line(_options(head + more), first, "")
        if more or after.strip()[:1].isalnum():
            raise UsageError(f"{rest.strip()!r} after {first!r}", expected="nothing, or options")
        rest = f"{first} {after}"
    return Line(_options(head), "", rest.strip())


def _split(text: str) -> tuple[str, str]:
    """The options that a text begins with, and the rest as it is."""
    end = 0
    while (word := _WORD.match(text, end)) and word[1].startswith("-"):
        if word[1] == "--":
            return text[:end], text[word.end() :]
        end = word.end()
        if word[1] in _VALUED and (value := _WORD.match(text, end)):
            end = value.end()
    return text[:end], text[end:]


def _options(text: str) -> Options:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text.strip()!r} cannot be read ({error})") from error
    try:
        options, wants_help = magic.main(words, prog_name="%stageprof", standalone_mode=False)
    except click.ClickException as error:
        raise UsageError(complaint(error), do="see %stageprof?") from error
    if wants_help:
        raise HelpWanted
    chosen: Options = options
    return chosen


def help_text() -> str:
    """What `%stageprof?` says."""
    with click.Context(magic, info_name="%stageprof", max_content_width=90) as context:
        return magic.get_help(context)


__all__ = ["COMPARE", "LAST", "OFF", "ON", "WORDS", "HelpWanted", "Line", "help_text", "read"]
