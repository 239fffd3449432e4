"""`stageprof check`: look at what a program would run, before it runs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Final

import click

from stageprof.alphabet import echo
from stageprof.check import Preflight, looking_of
from stageprof.checked import Checked
from stageprof.commands.attach import Duration
from stageprof.commands.run import Terminated, program_of
from stageprof.configuration import settings_for
from stageprof.options import ruled
from stageprof.outcome import status_of
from stageprof.program import Program
from stageprof.reading import roomy
from stageprof.renderers import check as renderer
from stageprof_collectors.findings.finding import Severity
from stageprof_collectors.preflight.checkup import LIMIT_S, Looking
from stageprof_collectors.text import safe
from stageprof_runtime.errors import UsageError

#: Options that take the next word.
VALUED: Final = ("--limit", "--like", "--rule", "--fail-above", "--max-memory")
#: Status of a program with graver findings than were allowed.
FAILED: Final = 1


class _Terminated(Terminated):
    valued = VALUED


@click.command(cls=_Terminated, options_metavar="[OPTIONS]")
@click.option("-m", "module", metavar="MODULE", help="Check a module, as python -m runs it.")
@click.option("-c", "code", metavar="CODE", help="Check a text, as python -c runs it.")
@click.option("--all", "everything", is_flag=True, help="Compute, and look at every graph.")
@click.option("--like", metavar="FILE", help="Predict costs as they were in this recording.")
@click.option(
    "--limit", type=Duration(), default=f"{LIMIT_S:g}s", show_default=True, metavar="TIME",
    help="Time that looking at one graph may take.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object; docs/check.md.")
@click.option("--markdown", "as_markdown", is_flag=True, help="For issues and CI comments.")
@roomy
@ruled
@click.option(
    "--fail-above", type=click.Choice([str(s) for s in Severity][::-1]), metavar="SEVERITY",
    help="End with status 1 if a finding is graver: note, moderate or serious.",
)  # fmt: skip
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[SCRIPT] [ARGS]...")
def check(
    *,
    module: str | None,
    code: str | None,
    words: tuple[str, ...],
    everything: bool,
    like: str | None,
    limit: float,
    as_json: bool,
    as_markdown: bool,
    rules: tuple[str, ...],
    fail_above: str | None,
) -> int:
    """Look at what a script would run, and say what will be slow.

    The script runs until it hands Dask the first thing to compute: a compute, persist or submit, or
    a training. That is looked at and not run, and the script ends there: its `finally` clauses and
    context managers are run, so clusters are closed. With --all it computes, and every graph is
    looked at. What the script prints goes to stderr.
    """
    if as_json and as_markdown:
        raise UsageError("both --json and --markdown", expected="one form")
    if not limit:
        raise UsageError("--limit 0", expected="a time above 0, like 10s")
    program = program_of(module, code, words)
    settings, warning = settings_for(rules)
    if warning:
        click.echo(safe(f"stageprof: {warning}", limit=2000), err=True)
    looking = looking_of(None, limit, like, settings)
    status, checked = _checked(program, looking, everything=everything)
    form = renderer.json_text if as_json else renderer.markdown if as_markdown else None
    if form is None:
        renderer.show(checked, sys.stdout)
    else:
        echo(form(checked), nl=False)
    return status or _status(checked, fail_above)


def _checked(program: Program, looking: Looking, *, everything: bool) -> tuple[int, Checked]:
    """The program's own exit status, 0 if it was stopped, and what was found."""
    main = program.prepare()

    def run() -> None:
        with flight, _told_apart():
            program.run(main)

    flight = Preflight(looking, everything=everything)
    status = status_of(run)
    off = tuple(sorted(looking.settings.off))
    return status, Checked(flight.result(), program.name, off)


@contextlib.contextmanager
def _told_apart() -> Iterator[None]:
    """What the program and its children print goes to stderr: the answer has stdout to itself."""
    with contextlib.ExitStack() as stack:
        if sys.stdout is not None:
            sys.stdout.flush()
        with contextlib.suppress(OSError):  # one of them is closed
            kept = os.dup(1)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, 1)
            os.dup2(2, 1)
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield


def _status(checked: Checked, fail_above: str | None) -> int:
    if fail_above is None:
        return 0
    graver = list(Severity)[: list(Severity).index(Severity(fail_above))]
    return FAILED if any(found.severity in graver for found in checked) else 0
