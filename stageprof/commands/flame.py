"""`stageprof flame`: what threads were seen doing, as one page."""

from __future__ import annotations

from pathlib import Path

import click

from stageprof.commands.written import wrote
from stageprof.export.target import Format, exported
from stageprof.reading import reading, roomy


@click.command()
@click.argument("file")
@click.option(
    "-o", "--output", metavar="OUT", help="The page; default FILE's name with .flame.html."
)
@click.option("--stage", metavar="STAGE", help="Of one stage only: construction, execution, ...")
@click.option("--prefix", metavar="PREFIX", help="Of tasks of one prefix only.")
@click.option("--worker", metavar="WORKER", help="Of one worker only: its address or name.")
@click.option("--force", is_flag=True, help="Replace a page that is there.")
@roomy
def flame(
    *,
    file: str,
    output: str | None,
    stage: str | None,
    prefix: str | None,
    worker: str | None,
    force: bool,
) -> None:
    """Write a flame graph: one page that works from disk and asks nobody for anything."""
    from stageprof.pages import flame as page

    target = Path(output or f"{Path(file).stem}.flame.html")
    with reading(file) as recording:
        text = page.text(recording, stage, prefix, worker)
        form = Format(lambda _, path: _written(path, text), ".flame.html")
        exported(form, recording, target, force=force)
    wrote(target)


def _written(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
