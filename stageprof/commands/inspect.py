"""`stageprof inspect`: a recording frame by frame."""

from __future__ import annotations

import click

from stageprof_collectors.storage.inspection import dump


@click.command()
@click.argument("file")
def inspect(*, file: str) -> None:
    """Print the frames of a recording as text, and whether it is whole."""
    for line in dump(file):
        click.echo(line)
