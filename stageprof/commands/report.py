"""`stageprof report`: a recording as one HTML file that needs no server and no network."""

from __future__ import annotations

from pathlib import Path

import click

from stageprof.app import written
from stageprof.export.target import Format, exported
from stageprof.reading import reading


@click.command()
@click.argument("file")
@click.option("-o", "--output", metavar="OUT", help="The page; default FILE's name with .html.")
@click.option("--force", is_flag=True, help="Replace a report that is there.")
def report(*, file: str, output: str | None, force: bool) -> None:
    """Write all pages of the app as one file that works from disk."""
    target = Path(output or f"{Path(file).stem}.html")
    with reading(file) as recording:
        exported(Format(written, ".html"), recording, target, force=force)
    click.echo(f"Wrote {target}")
