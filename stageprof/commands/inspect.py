"""`stageprof inspect`: a recording frame by frame."""

from __future__ import annotations

import click

from stageprof.alphabet import echo
from stageprof.reading import room, roomy
from stageprof_collectors.storage.inspection import dump


@click.command()
@click.argument("file")
@roomy
def inspect(*, file: str) -> None:
    """Print the frames of a recording as text, and whether it is whole."""
    for line in dump(file, max_memory=room()):
        echo(line)
