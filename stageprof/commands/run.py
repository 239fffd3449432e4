"""`stageprof run`: profile a program."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Self, TextIO

import click

from stageprof import program as programs
from stageprof.outcome import INTERRUPTED, status_of
from stageprof.profile import profile
from stageprof.program import Program
from stageprof.recording import Recording
from stageprof.statusline import StatusLine
from stageprof.text import safe
from stageprof_runtime.errors import UsageError


class _Terminated(click.Command):
    """Ends stageprof's own options where the program begins, as `python` does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = _program_begins(args)
        if end <= len(args):
            args = [*args[:end], "--", *args[end:]]
        return super().parse_args(ctx, args)


def _program_begins(args: Sequence[str]) -> int:
    """Index of the first argument that is the program's own."""
    i = 0
    while i < len(args):
        if args[i] in ("-m", "-c"):
            return i + 2
        if args[i].startswith(("-m", "-c")):
            return i + 1
        if not args[i].startswith("-") or args[i] == "-":
            return i
        i += 2 if args[i] in ("-o", "--output") else 1
    return i


@click.command(cls=_Terminated, options_metavar="[OPTIONS]")
@click.option("-o", "--output", metavar="FILE", help="The recording; default <script>.stageprof.")
@click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does.")
@click.option("-c", "code", metavar="CODE", help="Run a text, as python -c does.")
@click.option("--summary/--no-summary", default=True, help="Print the summary last, on stderr.")
@click.option("--live/--no-live", default=True, help="Show on a terminal how far the run is.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[SCRIPT] [ARGS]...")
def run(
    *, output: str | None, module: str | None, code: str | None, words: tuple[str, ...], **how: bool
) -> int:
    """Profile a script, a module (-m) or a text (-c), with its arguments.

    The exit status is the program's own. What the program prints stays its own, too: the summary
    goes to stderr.
    """
    program = _program(module, code, words)
    return profiled(program, output or _default(program), sys.stderr, **how)


def _program(module: str | None, code: str | None, words: tuple[str, ...]) -> Program:
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


def profiled(program: Program, output: str, out: TextIO, *, summary: bool, live: bool) -> int:
    """Run a program under `stageprof.profile`; its exit status.

    Args:
        program: what to run.
        output: the recording; if it cannot be written, nothing is run.
        out: where the summary goes.
        summary: whether it is printed.
        live: whether a terminal shows how far the run is.
    """
    output = str(Path(output).absolute())  # the program may change the folder
    main = program.prepare()
    with _Region(output, program.name, live=live) as region:
        status = status_of(lambda: program.run(main))
    return status if region.ended(out if summary else None) else INTERRUPTED


class _Region:
    """The profiled region with its status line; a second Ctrl-C while it ends, ends us."""

    def __init__(self, output: str, label: str, *, live: bool) -> None:
        self._profile = profile(output, label=label)
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

    def ended(self, out: TextIO | None) -> bool:
        """Stop recording and print the summary; False if Ctrl-C came between."""
        if os.getpid() != self._pid:  # a child that the program forked: not its recording
            return True
        try:
            recording = self._profile.stop()
            _flush()
            if out is not None:
                _summarize(recording, out)
        except KeyboardInterrupt:  # the file stays as far as it is
            return False
        return True


def _flush() -> None:
    """What the program printed comes before the summary."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):  # closed, or nobody reads it: the program's own affair
        pass


def _summarize(recording: Recording, out: TextIO) -> None:
    """A summary that fails must not cost the program its exit status."""
    from stageprof.renderers import terminal

    try:
        terminal.show(recording.summary, out)
    except (Exception, SystemExit) as error:  # rich exits when nobody reads
        seen = f"no summary ({type(error).__name__}: {error})"
        click.echo(safe(f"stageprof: {seen}; the recording is {recording.path}", limit=500), out)


__all__ = ["profiled", "run"]
