"""`stageprof compare`: recordings against those of a baseline; status 1 if something is worse."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from stageprof.alphabet import echo
from stageprof.app import needs_ui
from stageprof.chosen import chosen
from stageprof.comparison import measured
from stageprof.configuration import settings_for
from stageprof.options import ruled
from stageprof.private import write_text
from stageprof.progress import Progress
from stageprof.reading import beginning, roomy
from stageprof.renderers import (
    compare_json,
    compare_junit,
    compare_markdown,
    compare_terminal,
)
from stageprof_collectors.comparison.comparison import Compared, Options, compared
from stageprof_collectors.comparison.measured import Measured
from stageprof_collectors.findings.settings import Settings
from stageprof_collectors.storage.frame import MAGIC
from stageprof_collectors.text import safe
from stageprof_runtime.errors import UsageError
from stageprof_runtime.parameter import ParamType

#: Status where something is worse.
REGRESSION: Final = 1
#: What stands between baseline and candidate; a word that nobody can type.
_BETWEEN: Final = "\0--"
#: Forms that are written to a file, or to standard output where none is named.
_FORMS: Final[dict[str, Callable[[Compared], str]]] = {
    "markdown": compare_markdown.text,
    "json": compare_json.text,
    "junit": compare_junit.text,
}
#: How the names of their files end: such a word after a form is no recording.
_ENDINGS: Final = {
    "--markdown": (".md", ".markdown", ".txt"),
    "--json": (".json",),
    "--junit": (".xml",),
}
_STDOUT: Final = "-"
#: Seconds that connecting to a scheduler may take.
_PATIENCE_S: Final = 10


class _Sides(click.Command):
    """Keeps the `--` between the sides, and lets a form stand without a file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, but for these."""
        return super().parse_args(ctx, list(_words(args)))


def _words(args: Sequence[str]) -> Iterator[str]:
    """`--` as a word of its own; `--json` and `--json out.json` as `--json=FILE`."""
    rest = iter(range(len(args)))
    for i in rest:
        word = args[i]
        if word == "--":
            yield _BETWEEN
        elif word in _ENDINGS:
            named = i + 1 < len(args) and args[i + 1].lower().endswith(_ENDINGS[word])
            yield f"{word}={args[next(rest)] if named else _STDOUT}"
        else:
            yield word


class Share(ParamType[float]):
    """A share: `5%`, `0.05`."""

    name = "share"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The share in a text, 0 to 1."""
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) *(%|)", str(value))
        share = float(match[1]) / (100 if match[2] else 1) if match else -1.0
        if not 0 <= share <= 1:
            self.fail(f"{value!r} is no share; expected one like 5% or 0.05", param, ctx)
        return share


@click.command(cls=_Sides, options_metavar="[OPTIONS]")
@click.argument("words", nargs=-1, metavar="BASE... -- HEAD...")
@click.option("--paired", is_flag=True, help="Both sides were recorded in turn, in this order.")
@click.option("--floor", type=Share(), metavar="SHARE", help="5%: less is no change; or learned.")
@click.option("--force", is_flag=True, help="Judge times though conditions or programs differ.")
@click.option("--markdown", metavar="[=FILE]", help="For a pull request or a CI summary.")
@click.option("--json", metavar="[=FILE]", help="One JSON object; docs/compare.md.")
@click.option("--junit", metavar="[=FILE]", help="JUnit's XML.")
@click.option("--html", metavar="FILE", help="A page with both runs side by side.")
@click.option("--scheduler", metavar="ADDRESS", help="Have a cluster read them: tcp://..:8786.")
@roomy
@ruled
def compare(
    *,
    words: tuple[str, ...],
    paired: bool,
    floor: float | None,
    force: bool,
    html: str | None,
    scheduler: str | None,
    rules: tuple[str, ...],
    **forms: str | None,
) -> int:
    """Compare recordings (HEAD) with those of a baseline (BASE).

    Each side is files, folders (all *.stageprof in them) or globs. Record seven a side or more:
    times are judged by six (or ten pairs), counts that vary by three, others by one. Two words
    need no -- between them.

    The exit status is 1 if something is worse, else 0; 2 for bad input.
    """
    sides = [chosen(side, name) for side, name in zip(_split(words), _NAMES, strict=True)]
    targets = {name: target for name, target in forms.items() if target is not None}
    _check(targets, html, {path.resolve() for side in sides for path in side})
    settings, warning = settings_for(rules)
    if warning:
        click.echo(safe(f"stageprof: {warning}", limit=2000), err=True)
    options = Options(paired=paired, floor=floor, force=force)
    with _on(scheduler):
        found = _compared(sides, settings, options)
    try:
        for name, target in targets.items():
            _write(_FORMS[name](found), target)
        if html is not None:
            _page(found, html)
    finally:  # a file that cannot be written must not cost what was found, nor who reads no more it
        if _STDOUT not in targets.values():
            compare_terminal.show(found, sys.stdout)
    return REGRESSION if found.regressions else 0


_NAMES: Final = ("baseline", "candidate")


def _split(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The words of both sides."""
    between = [i for i, word in enumerate(words) if word == _BETWEEN]
    if len(between) == 1:
        return words[: between[0]], words[between[0] + 1 :]
    if not between and len(words) == 2:
        return words[:1], words[1:]
    raise UsageError(
        _seen(words, len(between)),
        expected="recordings of two sides: the baseline (before), --, the candidate (after)",
        do="name both: stageprof compare before.stageprof -- after.stageprof",
    )


def _seen(words: Sequence[str], between: int) -> str:
    """What was given instead of two sides, in words."""
    if between:
        return f"-- stands {between} times among the recordings"
    if not words:
        return "no recording was named"
    if len(words) == 1:
        return f"only one recording was named, {words[0]}"
    return f"{len(words)} recordings were named, and no -- tells where the candidate's begin"


def _check(targets: dict[str, str], html: str | None, sources: set[Path]) -> None:
    """Neither two forms on standard output, nor one over a recording or where none can be."""
    if html is not None:
        needs_ui()
    if list(targets.values()).count(_STDOUT) > 1:
        raise UsageError(
            f"{' and '.join(f'--{name}' for name in targets)} on standard output",
            expected="one there, and the others with a file",
            do="--markdown=report.md",
        )
    if html == _STDOUT:
        raise UsageError("--html on standard output", expected="a file", do="--html report.html")
    files = [target for target in targets.values() if target != _STDOUT]
    files += [] if html is None else [html]
    for target in files:
        bad = not target or "\0" in target  # which no path has
        if bad or Path(os.path.realpath(target)) in sources or _is_recording(target):
            raise UsageError(f"cannot write to {target!r}", expected="a file that is no recording")
        if not Path(target).absolute().parent.is_dir():
            raise UsageError(
                f"cannot write {target} (its folder does not exist)", do="make the folder first"
            )
    places = list(map(os.path.realpath, files))
    for place in places:
        if places.count(place) > 1 and (os.path.isfile(place) or not os.path.exists(place)):  # noqa: PTH113, PTH110 (as it was given)
            raise UsageError(f"two forms for one file, {place!r}", expected="a file for each")


def _is_recording(target: str) -> bool:
    return beginning(target, len(MAGIC)) == MAGIC


@contextmanager
def _on(scheduler: str | None) -> Iterator[None]:
    """Have a cluster active, if one is named."""
    if scheduler is None:
        yield
        return
    from distributed import Client

    try:
        client = Client(scheduler, timeout=_PATIENCE_S)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(
            f"no scheduler at {scheduler} ({error or type(error).__name__})",
            expected="the address of one that runs",
            do="leave out --scheduler to read recordings in this process",
        ) from error
    with client:
        yield


def _say(sentence: str) -> None:
    click.echo(f"stageprof: {sentence}", err=True)


def _compared(sides: Sequence[Sequence[Path]], settings: Settings, options: Options) -> Compared:
    """Read one recording after another, and compare what is kept of them."""
    total, read = sum(map(len, sides)), 0
    kept = []
    with Progress(sys.stderr, "compare: {done} of {of} recordings read, {what}") as progress:
        for side, name in zip(sides, _NAMES, strict=True):

            def told(done: int, _of: int, file: str, before: int = read) -> None:
                progress(before + done, total, safe(Path(file).name, limit=40))

            kept.append(measured(side, name, settings, told, _say))
            read += len(side)
    _check_programs(kept, options)
    return compared(kept[0], kept[1], options)


def _check_programs(kept: Sequence[Sequence[Measured]], options: Options) -> None:
    """Recordings of different programs are a mistake in a script, unless it insists."""
    names = [sorted({each.program for each in side}) for side in kept]
    if options.force or any(len(side) > 1 for side in names) or names[0] == names[1]:
        return
    said = [", ".join(name or "an unnamed program" for name in side[:3]) for side in names]
    raise UsageError(
        f"recordings of different programs: {said[0]} (baseline) and {said[1]} (candidate)",
        expected="the same program on both sides",
        do="check the paths; --force compares them all the same",
    )


def _write(text: str, target: str) -> None:
    if target == _STDOUT:
        echo(text, nl=False)
        return
    try:
        write_text(target, text)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or str(error)
        raise UsageError(f"cannot write {target} ({why})", do="choose another file") from error


def _page(found: Compared, target: str) -> None:
    from stageprof import comparison_page

    comparison_page.written(found, target)
