"""`stageprof report`: a recording as one HTML file that needs no server and no network."""

from __future__ import annotations

from pathlib import Path

import click

from stageprof.app import written
from stageprof.commands.written import wrote
from stageprof.export.target import placed
from stageprof.reading import reading, roomy
from stageprof.redacted import redacted, redaction


@click.command()
@click.argument("file")
@click.option("-o", "--output", metavar="OUT", help="The page; default FILE's name with .html.")
@click.option("--force", is_flag=True, help="Replace a report that is there.")
@roomy
@redaction
def report(*, file: str, output: str | None, force: bool, redact: bool) -> None:
    """Write all pages of the app as one file that works from disk."""
    target = Path(output or f"{Path(file).stem}.html")
    with (
        redacted([file], wanted=redact) as (source,),
        reading(source) as recording,
        placed(target, [file], force=force) as part,
    ):
        if redact:  # where the copy lay while it was read may tell whose it is
            recording.path = Path(source).name
        written(recording, part)
    wrote(target)
