"""The table of a baseline's recordings, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from math import isfinite
from statistics import median
from typing import TextIO

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from stageprof.baseline import Kept, Refused
from stageprof.note import SCHEMA, Note
from stageprof.renderers import page
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.text import safe


def show(found: Sequence[Kept], file: TextIO) -> None:
    """Print a table for each branch, machine and versions, with a line for each program."""
    console = page.console(file)
    if not found:
        console.print("No recordings are kept here.")
    for number, part in enumerate(_parts(found)):
        if number:
            console.print()
        console.print(part)


def _parts(found: Sequence[Kept]) -> Iterator[Group]:
    for (branch, machine, versions), of_one in groupby(found, lambda each: each.note.series[:3]):
        yield Group(
            Text(safe(branch), style="bold"),
            Text(safe(machine, limit=200)),
            Text(safe(versions, limit=200)),
            _table(list(of_one)),
        )


def _table(found: list[Kept]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("recordings", justify="right", no_wrap=True)
    table.add_column("wall", justify="right", no_wrap=True)
    table.add_column("newest", no_wrap=True)
    table.add_column("program", overflow="fold")
    for program, group in groupby(found, lambda each: each.note.program):
        notes = [each.note for each in group]
        wall = seconds(median(note.wall_s for note in notes))
        newest = Text(_when(notes[-1]))
        table.add_row(str(len(notes)), wall, newest, Text(safe(program, limit=200)))
    return table


def json_text(found: Sequence[Kept]) -> str:
    """One object; docs/ci.md."""
    entries = [{"path": str(each.path), **_facts(each)} for each in found]
    return json.dumps({"schema": SCHEMA, "recordings": entries}, allow_nan=False) + "\n"


def _facts(each: Kept) -> dict[str, str | float | None]:
    facts = msgspec.structs.asdict(each.note)
    del facts["schema"]  # that of all is said once
    return facts | {"wall_s": facts["wall_s"] if isfinite(facts["wall_s"]) else None}


def line(each: Kept) -> str:
    """What is said of one recording."""
    note = each.note
    what = f"{_when(note)}  {seconds(note.wall_s):>8}  {safe(note.program, limit=200)}"
    return f"{what}  ({safe(note.branch)})"


def refused(each: Refused) -> str:
    """That a recording is not kept, and why."""
    return f"not kept: {safe(str(each.path), limit=200)}: {safe(each.why, limit=200)}"


def _when(note: Note) -> str:
    return safe(note.started[:16].replace("T", " "))


def total(number: int, verb: str) -> str:
    """What is said of all."""
    return f"{verb} {count(number, 'recording')}"
