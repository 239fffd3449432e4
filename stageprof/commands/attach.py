"""`stageprof attach`: record a running cluster from outside."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import click

from stageprof import flight
from stageprof.attach import Attachment, warning
from stageprof.commands.written import wrote
from stageprof.reading import reading, roomy
from stageprof.recording import Recording
from stageprof.renderers import terminal
from stageprof.statusline import StatusLine
from stageprof_collectors.text import safe
from stageprof_runtime.errors import UsageError
from stageprof_runtime.parameter import ParamType

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class Duration(ParamType[float]):
    """A time span: `60`, `60s`, `1.5m`, `2h`; in seconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The seconds in a text."""
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) *(s|m|min|h|)", str(value))
        if match is None:
            self.fail(f"{value!r} is no time span; expected one like 60s, 5m or 1h", param, ctx)
        return float(match[1]) * _UNITS[match[2]]


@click.command()
@click.argument("address")
@click.option("-o", "--output", required=True, metavar="FILE", help="The recording.")
@click.option("--for", "seconds", type=Duration(), metavar="TIME", help="60s, 5m; or till Ctrl-C.")
@click.option("--dump", is_flag=True, help="What its flight recorder has kept; docs/clusters.md.")
@click.option("--summary/--no-summary", default=True, help="Print the summary last, on stderr.")
@roomy
@click.option("--insecure", is_flag=True, help="Do not warn of a connection that is not tls://.")
def attach(
    *, address: str, output: str, seconds: float | None, dump: bool, summary: bool, insecure: bool
) -> None:
    """Record the cluster at ADDRESS until the time is up, Ctrl-C, or its end.

    With --dump: write what a cluster's flight recorder has kept until now. ADDRESS may be its
    folder then.
    """
    if dump and seconds is not None:
        raise UsageError("--dump with --for", expected="one of them", do="leave --for out")
    folder = dump and (Path(address).is_dir() or flight.is_path(address))
    note = "" if insecure or folder else warning(address)
    if note:
        click.echo(note, err=True)
    if not dump:
        _conclude(_recorded(address, output, seconds), output, summary=summary)
        return
    window = flight.dump(address, output)
    click.echo(safe(f"stageprof: {flight.said(window)}", limit=500), err=True)
    with reading(output) as recording:
        _conclude(recording, output, summary=summary)


def _conclude(recording: Recording, output: str, *, summary: bool) -> None:
    if summary:
        terminal.show(recording.summary, sys.stderr)
    else:
        wrote(output, err=True)


def _recorded(address: str, output: str, seconds: float | None) -> Recording:
    with Attachment(address, output) as attachment:
        click.echo(f"stageprof: recording {safe(address)}; Ctrl-C ends it", err=True)
        with StatusLine(lambda: attachment.live):
            _wait(attachment, seconds)
    return attachment.recording


def _wait(attachment: Attachment, seconds: float | None) -> None:
    end = time.monotonic() + (float("inf") if seconds is None else seconds)
    try:
        while attachment.alive and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.2))
    except KeyboardInterrupt:
        return
    if not attachment.alive:
        what = "the connection to the cluster was lost" if attachment.lost else "the cluster ended"
        click.echo(f"stageprof: {what}; what was recorded is kept", err=True)
