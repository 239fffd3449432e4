"""`stageprof run`: profile a program."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple, Self, TextIO

import click

from stageprof import program as programs
from stageprof.app import needs_ui
from stageprof.configuration import settings_for_run
from stageprof.options import Face, Options, typed, valued
from stageprof.outcome import INTERRUPTED, status_of
from stageprof.profile import profile
from stageprof.program import NotRunnable, Program
from stageprof.progress import Progress
from stageprof.recording import Recording
from stageprof.statusline import StatusLine
from stageprof_collectors.findings.settings import Settings
from stageprof_collectors.summary import summarize
from stageprof_collectors.text import safe
from stageprof_runtime.errors import UsageError


class Terminated(click.Command):
    """Ends stageprof's own options where the program begins, as `python` does."""

    #: options that take the next word
    valued: ClassVar[tuple[str, ...]] = valued(Face.COMMAND)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, with what begins the program marked."""
        end = _program_begins(args, self.valued)
        if end is not None and end <= len(args):
            args = [*args[:end], "--", *args[end:]]
        return super().parse_args(ctx, args)


def _program_begins(args: Sequence[str], valued: Sequence[str]) -> int | None:
    """Index of the first argument that is the program's own; None if it is marked already."""
    i = 0
    while i < len(args):
        word = _QUIET_AND_MORE.sub("-", args[i])
        if word in ("-m", "-c"):
            return i + 2
        if word.startswith(("-m", "-c")):
            return i + 1
        if word == "--":
            return None
        if not word.startswith("-") or word == "-":
            return i
        i += 2 if word in valued else 1
    return i


#: `-qo FILE` is `-q -o FILE`.
_QUIET_AND_MORE = re.compile(r"^-q+(?=[a-z])")


@click.command(cls=Terminated, options_metavar="[OPTIONS]")
@click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does.")
@click.option("-c", "code", metavar="CODE", help="Run a text, as python -c does.")
@click.option("--summary/--no-summary", default=True, help="Print the summary last, on stderr.")
@click.option("--live/--no-live", default=True, help="Show on a terminal how far the run is.")
@typed(Face.COMMAND)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[SCRIPT] [ARGS]...")
def run(
    *,
    module: str | None,
    code: str | None,
    words: tuple[str, ...],
    summary: bool,
    live: bool,
    **chosen: Any,
) -> int:
    """Profile a script, a module (-m) or a text (-c), with its arguments.

    The recording goes to <script>.stageprof unless -o says otherwise, of a module (-m) to
    <module>.stageprof, of a text (-c) to command.stageprof; one that is there is replaced. The exit
    status is the program's own. What the program prints stays its own, too: the summary goes to
    stderr.
    """
    options = Options(**chosen)
    program = program_of(module, code, words)
    out = sys.stderr if summary and not options.quiet else None
    settings = Diagnosing(*settings_for_run(options.rules))
    live = live and not options.quiet
    return profiled(program, options, out, live=live, diagnosing=settings)


def program_of(module: str | None, code: str | None, words: tuple[str, ...]) -> Program:
    """The program that the words of a command name.

    Raises:
        UsageError: there is none, or more than one.
    """
    if module is not None and code is not None:
        raise UsageError("both -m and -c", expected="one program")
    if module is not None:
        return programs.module(module, words)
    if code is not None:
        return programs.text(code, words)
    if not words:
        raise UsageError("no program", expected="a script, -m MODULE or -c CODE")
    return programs.script(words[0], words[1:])


def _default(program: Program) -> str:
    name = "command" if program.name == "-c" else program.name.removesuffix(".py")
    return f"{name}.stageprof"


class Diagnosing(NamedTuple):
    """How the run is diagnosed; read before it, for the program may change the folder."""

    settings: Settings
    #: what was wrong with them, "" if nothing was
    problem: str


def profiled(
    program: Program,
    options: Options,
    out: TextIO | None,
    *,
    live: bool = True,
    diagnosing: Diagnosing | None = None,
) -> int:
    """Run a program under `stageprof.profile`; its exit status.

    Args:
        program: what to run.
        options: how to record it; if the recording cannot be written, nothing is run.
        out: where the summary goes, if it is wanted.
        live: whether a terminal shows how far the run is.
        diagnosing: how the run is diagnosed; None for what holds without an option.
    """
    diagnosing = diagnosing or Diagnosing(*settings_for_run(()))
    if options.report is not None:
        needs_ui()
    options = replace(
        options,
        path=_absolute(options.path or _default(program)),
        report=_absolute(options.report),
        label=options.label or program.name,
    )
    main = program.prepare()
    with _Region(options, live=live) as region:
        status = status_of(lambda: region.run(program, main))
    return status if region.ended(out, diagnosing) else INTERRUPTED


def _absolute(path: str | None) -> str | None:
    """For the program may change the folder."""
    return None if path is None else str(Path(path).absolute())


class _Whole(profile):
    """Records all of a program, which has nothing before what is recorded."""

    _what = "program"


class _Region:
    """The profiled region with its status line; a second Ctrl-C while it ends, ends us."""

    def __init__(self, options: Options, *, live: bool) -> None:
        self._profile = _Whole(**options.recorded)
        self._report = options.report
        self._line = StatusLine(lambda: self._profile.live) if live else nullcontext()
        self._pid = os.getpid()

    def __enter__(self) -> Self:
        self._profile.start()
        self._line.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._line.__exit__(None, None, None)
        if error[0] is not None:
            self._profile.stop()

    def run(self, program: Program, main: ModuleType) -> None:
        """Run the program; what it raises is noted, and goes on."""
        try:
            program.run(main)
        except NotRunnable:  # ours, and nothing that the program did
            raise
        except BaseException as error:
            self._profile.ended(error)
            raise

    def ended(self, out: TextIO | None, diagnosing: Diagnosing) -> bool:
        """Stop recording and print the summary; False if Ctrl-C came between."""
        if os.getpid() != self._pid:  # a child that the program forked: not its recording
            return True
        try:
            recording = self._profile.stop()
            _flush()
            if out is not None:
                _summarize(recording, out, diagnosing)
            if self._report is not None:
                _report(recording, self._report, diagnosing[0])
        except KeyboardInterrupt:  # the file stays as far as it is
            return False
        return True


def _flush() -> None:
    """What the program printed comes before the summary."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except (OSError, ValueError):  # closed, or nobody reads it: the program's own affair
        pass


def _summarize(recording: Recording, out: TextIO, diagnosing: Diagnosing) -> None:
    """A summary that fails must not cost the program its exit status."""
    from stageprof.renderers import terminal

    settings, problem = diagnosing
    try:
        with Progress(out) as progress:
            summary = summarize(recording, settings, problem=problem, progress=progress)
        terminal.show(summary, out)
    except (Exception, SystemExit) as error:  # rich exits when nobody reads
        seen = f"no summary ({type(error).__name__}: {error})"
        _say(f"{seen}; the recording is {recording.path}", out)


def _report(recording: Recording, path: str, settings: Settings) -> None:
    """Nor must a report that cannot be written."""
    try:
        recording.report(path, settings)
    except Exception as error:
        _say(f"no report ({error})", sys.stderr)


def _say(what: str, out: TextIO | None) -> None:
    """To whoever reads, if anybody still does."""
    with contextlib.suppress(OSError, ValueError):
        click.echo(safe(f"stageprof: {what}", limit=500), out)


__all__ = ["Terminated", "profiled", "program_of", "run"]
