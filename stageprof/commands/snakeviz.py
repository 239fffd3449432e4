"""`stageprof snakeviz`: a stage's functions in snakeviz's page."""

from __future__ import annotations

from pathlib import Path

import click

from stageprof.commands.written import wrote
from stageprof.export.target import Format, exported
from stageprof.reading import reading, roomy
from stageprof_collectors.profiles.stats import counted, stats


@click.command()
@click.argument("file")
@click.option("--stage", metavar="STAGE", help="Of one stage only: construction, execution, ...")
@click.option("-o", "--output", metavar="OUT", help="The page; default FILE's name and the stage.")
@click.option("--force", is_flag=True, help="Replace a page that is there.")
@roomy
def snakeviz(*, file: str, stage: str | None, output: str | None, force: bool) -> None:
    """Write the page that snakeviz would show: one file, without a server.

    It is made from counted calls (`stageprof run --deterministic`) if there are any, else from the
    stacks that were looked at: a call is a look then.
    """
    from stageprof.pages import snakeviz as page

    ending = ".".join(filter(None, (stage, "snakeviz.html")))
    target = Path(output or f"{Path(file).stem}.{ending}")
    with reading(file) as recording:
        how = "counted" if counted(recording) else "looked at"
        title = " ".join(filter(None, (Path(file).stem, stage, how)))
        text = page.text(stats(recording, stage), title)
        form = Format(lambda _, path: _written(path, text), ".html")
        exported(form, recording, target, force=force)
    wrote(target)


def _written(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
