"""`stageprof export`: a recording for other tools."""

from __future__ import annotations

from glob import has_magic
from pathlib import Path

import click

from stageprof.chosen import chosen
from stageprof.commands.written import wrote
from stageprof.export import FORMATS, parquet
from stageprof.export.target import placed
from stageprof.reading import reading, roomy
from stageprof.redacted import REDACTED, redacted, redaction
from stageprof_collectors.text import safe
from stageprof_runtime.errors import UsageError


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--to", "form", type=click.Choice(list(FORMATS)), help="The format.")
@click.option("-o", "--output", metavar="OUT", help="The file or folder; default FILE's name.")
@click.option("--force", is_flag=True, help="Replace an export that is there.")
@roomy
@redaction
def export(
    *, files: tuple[str, ...], form: str | None, output: str | None, force: bool, redact: bool
) -> None:
    """Write a recording for other tools.

    A dataset of its tables (parquet; of several recordings too: files, folders or globs, see
    docs/scaling.md), its tables for a spreadsheet (csv), a trace for ui.perfetto.dev, stacks for
    speedscope or as collapsed text, or calls for `pstats` and snakeviz (prof). With --redact and no
    format, a recording to hand to somebody; see docs/privacy.md.
    """
    if form is None and not redact:
        raise UsageError("no format", expected="--to FORMAT, or --redact")
    kind = FORMATS[form] if form else REDACTED
    if len(files) > 1 and form != "parquet":
        raise UsageError(
            f"{len(files)} recordings to {form or 'redact'}",
            expected="one",
            do="only parquet takes several",
        )
    target = Path(output or f"{_stem(files[0])}{kind.suffix}")
    if form == "parquet":
        _dataset(files, target, force=force, redact=redact)
    else:
        with (
            redacted(files, wanted=redact) as (source,),
            reading(source) as recording,
            placed(target, files, force=force) as part,
        ):
            kind.write(recording, part)
    wrote(target)


def _stem(word: str) -> str:
    """The name of a file without its ending; of a pattern or `.` that of the folder."""
    path = Path(word)
    if path.stem and not has_magic(path.stem):
        return path.stem
    return Path(path.parent if path.stem else path).resolve().name


def _dataset(words: tuple[str, ...], target: Path, *, force: bool, redact: bool) -> None:
    files = [str(file) for file in chosen(words, "export")]
    with (
        redacted(files, wanted=redact) as sources,
        placed(target, files, force=force) as part,
    ):
        left_out = parquet.write_files([Path(source) for source in sources], part)
    for sentence in left_out:
        click.echo(safe(f"stageprof: {sentence}", limit=2000), err=True)
