"""Code of a cell under `stageprof.profile`, once or repeated, or looked at before it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import IPython.core.error
from IPython.core.interactiveshell import InteractiveShell

from stageprof.app import needs_ui
from stageprof.check import Preflight, check, looking_of
from stageprof.checked import Checked
from stageprof.configuration import settings_for_run
from stageprof.magic.cell import Code, Names, shown_as_the_users
from stageprof.magic.kept import Kept, Run, middle, warn
from stageprof.magic.live import Showing, showing
from stageprof.options import Options
from stageprof.profile import profile
from stageprof.recording import Recording
from stageprof_collectors.findings.quantity import seconds
from stageprof_collectors.findings.settings import Settings
from stageprof_collectors.preflight.checkup import LIMIT_S
from stageprof_collectors.storage.collector import Live
from stageprof_collectors.summary import summarize
from stageprof_collectors.text import safe
from stageprof_runtime.errors import StageprofError, UsageError


@contextmanager
def complaining() -> Iterator[None]:
    """What makes no sense is said in one line."""
    try:
        yield
    except StageprofError as error:
        raise IPython.core.error.UsageError(safe(str(error), limit=2000)) from None


class Raised(Exception):
    """Carries out of a coroutine what no coroutine can raise."""

    def __init__(self, error: StopIteration) -> None:
        super().__init__(error)
        self.error = error


class Running:
    """One cell or line that is run.

    Args:
        shell: whose it is.
        code: what is run.
        local: the variables of the function that it is in, if it is in one.
        kept: where its recordings go.
    """

    def __init__(
        self, shell: InteractiveShell, code: Code, local: Names | None, kept: Kept
    ) -> None:
        self._shell = shell
        self._code = code
        self._names: Names = shell.user_global_ns
        self._local: Names = shell.user_ns if local is None else local
        self._kept = kept
        self._now: profile | None = None

    async def run(self, options: Options) -> Any:
        """Run it and show what it came to; its value. Awaits only if the code does."""
        __tracebackhide__ = True
        with complaining():
            ready(options)
            diagnosing = settings_for_run(options.rules)
        if options.check:
            return await self._checked(diagnosing[0])
        options = named(self._shell, options)
        recordings: list[Recording] = []
        with showing(self._shell, self._live, quiet=options.quiet) as shown:
            try:
                value = None
                for each in _numbered(options):
                    value = await self._once(each, recordings)
            finally:
                shown.__exit__()
                self._ended(tuple(recordings), options, shown, diagnosing)
        return value

    def _live(self) -> Live:
        return Live() if self._now is None else self._now.live

    async def _once(self, options: Options, recordings: list[Recording]) -> Any:
        """Run it; what was recorded goes to `recordings`, whatever becomes of it."""
        __tracebackhide__ = True
        region = profile(**options.recorded)
        with complaining():
            await region.__aenter__() if self._code.awaits else region.start()
        self._now = region
        try:
            return await self._value()
        except BaseException as error:
            region.ended(error.error if isinstance(error, Raised) else error, "cell")
            raise
        finally:
            self._now = None
            try:
                await region.__aexit__(None, None, None) if self._code.awaits else region.stop()
            finally:
                recordings.append(region.recording)

    async def _value(self) -> Any:
        __tracebackhide__ = True
        code = self._code
        try:
            if code.awaits:
                return await code.wait(self._names, self._local)
            return code.run(self._names, self._local)
        except StopIteration as error:  # a coroutine may not raise it
            shown_as_the_users(self._shell, error)
            raise Raised(error) from None
        except BaseException as error:
            shown_as_the_users(self._shell, error)
            raise

    async def _checked(self, settings: Settings) -> Checked:
        """What would be slow: of what the code hands to Dask, or of its value."""
        __tracebackhide__ = True
        with complaining():
            looking = looking_of(None, LIMIT_S, None, settings)
        value = None
        with Preflight(looking) as flight:
            value = await self._value()
        found = Checked(flight.result(), label(self._shell), tuple(sorted(settings.off)))
        if found.found.graphs or value is None:
            return found
        try:
            return check(value, settings=settings)
        except UsageError:  # nor is it anything of Dask
            return found

    def _ended(
        self, run: Run, options: Options, shown: Showing, diagnosing: tuple[Settings, str]
    ) -> None:
        """Keep what was recorded and show it; no failure of that is one of the cell."""
        try:
            if run:
                settings, problem = diagnosing
                self._kept.keep(run, options, settings)
                if not options.quiet:
                    summary = summarize(middle(run), settings, problem=problem)
                    shown.card(summary, _notes(run))
        except Exception as error:
            warn(f"no summary ({type(error).__name__}: {error}); see %stageprof last")
        finally:
            shown.gone()


def label(shell: InteractiveShell) -> str:
    """What the cell that is running is called."""
    return f"In [{shell.displayhook.prompt_count}]"


def named(shell: InteractiveShell, options: Options) -> Options:
    """The same with a name for the recording; a cell may change the folder."""
    path, report = (p and str(Path(p).absolute()) for p in (options.path, options.report))
    return replace(options, label=options.label or label(shell), path=path, report=report)


def ready(options: Options) -> None:
    """Says what cannot come of it before anything is run.

    Raises:
        UsageError: a report is wanted, and what draws it is not installed.
    """
    if options.report is not None:
        needs_ui()


def _numbered(options: Options) -> Iterator[Options]:
    """Each time with a file of its own."""
    for number in range(1, options.repeat + 1):
        if options.path is None or options.repeat == 1:
            yield options
        else:
            path = Path(options.path)
            yield replace(options, path=str(path.with_stem(f"{path.stem}-{number}")))


def _notes(run: Run) -> tuple[str, ...]:
    if len(run) == 1:
        return ()
    walls = ", ".join(seconds(recording.wall) for recording in run)
    which = "the faster of two" if len(run) == 2 else "the one in the middle"
    return (f"{len(run)} runs: {walls}; this is {which}",)


__all__ = ["Running", "complaining", "label", "named", "ready"]
