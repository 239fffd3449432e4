"""`stageprof export`: a recording for other tools."""

from __future__ import annotations

from pathlib import Path

import click

from stageprof.export import FORMATS
from stageprof.export.target import exported
from stageprof.reading import reading


@click.command()
@click.argument("file")
@click.option("--to", "form", type=click.Choice(list(FORMATS)), required=True, help="The format.")
@click.option("-o", "--output", metavar="OUT", help="The file or folder; default FILE's name.")
@click.option("--force", is_flag=True, help="Replace an export that is there.")
def export(*, file: str, form: str, output: str | None, force: bool) -> None:
    """Write a recording for other tools.

    Its tables (parquet, csv), a trace for ui.perfetto.dev, stacks for speedscope or as collapsed
    text, or calls for `pstats` and snakeviz (prof).
    """
    chosen = FORMATS[form]
    target = Path(output or f"{Path(file).stem}{chosen.suffix}")
    with reading(file) as recording:
        exported(chosen, recording, target, force=force)
    click.echo(f"Wrote {target}")
