"""The magic itself: profile a line or a cell, record across cells, show and compare the last."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import (
    Magics,
    line_cell_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
)

from stageprof.magic import line as lines
from stageprof.magic.cell import Code, Names
from stageprof.magic.kept import Kept
from stageprof.magic.running import Raised, Running, complaining, named, ready
from stageprof.options import Options
from stageprof.profile import profile
from stageprof.recording import Recording
from stageprof_runtime.errors import UsageError

NAME: Final = "stageprof"


@magics_class
class Words(Magics):
    """`%stageprof` and `%%stageprof` of a shell."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._user: InteractiveShell = shell
        self._kept = Kept()
        #: what `on` began, and how
        self._on: tuple[profile, Options] | None = None

    @classmethod
    def of(cls, shell: InteractiveShell) -> Words | None:
        """That of a shell, if it has one."""
        found = shell.magics_manager.registry.get(cls.__name__)
        known = shell.magics_manager.magics["line"].get(NAME)
        return found if isinstance(found, cls) and known is not None else None

    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def stageprof(self, line: str, cell: str | None = None, local_ns: Names | None = None) -> Any:
        """See `line.magic`, whose help is this text."""
        __tracebackhide__ = True
        try:
            with complaining():
                asked = _asked(line, cell)
                if asked.word:
                    return self._word(asked.word, asked.options)
        except lines.HelpWanted:
            print(lines.help_text())  # noqa: T201 (what was asked for)
            return None
        text, above = (asked.code, 0) if cell is None else (cell, 1)
        code = Code.of(self._user, text, above=above)
        run = Running(self._user, code, local_ns, self._kept).run(asked.options)
        return run if code.awaits else _driven(run)

    def end(self) -> None:
        """End the recording that is on, if one is."""
        if self._on is not None:
            self._end()

    def _word(self, word: str, options: Options) -> Any:
        if word == lines.ON:
            return self._begin(options)
        if options != Options():
            raise UsageError(f"options with {word!r}", expected="none")
        if word == lines.OFF:
            return self._end()
        return self._kept.last if word == lines.LAST else self._kept.compared()

    def _begin(self, options: Options) -> None:
        if self._on is not None:
            raise UsageError("recording is on already", do="%stageprof off ends it")
        if options.check or options.repeat != 1 or options.rules:
            raise UsageError("--check, --repeat or --rule with 'on'", expected="code to run")
        ready(options)
        options = named(self._user, options)
        self._on = profile(**options.recorded).start(), options

    def _end(self) -> Recording | None:
        """End the recording that is on; as the value of the line it shows itself."""
        if self._on is None:
            raise UsageError("recording is not on", do="%stageprof on begins one")
        (region, options), self._on = self._on, None
        recording = region.stop()
        self._kept.keep((recording,), options)
        return None if options.quiet else recording


Words.stageprof.__doc__ = lines.help_text()


def _asked(line: str, cell: str | None) -> lines.Line:
    """What a line asks for.

    Raises:
        UsageError: it makes no sense.
    """
    asked = lines.read(line)
    if cell is not None and (asked.word or asked.code):
        seen = f"{asked.word or asked.code!r} after %%stageprof"
        raise UsageError(seen, expected="options; the code begins below")
    if cell is None and not (asked.word or asked.code):
        words = ", ".join(lines.WORDS)
        raise UsageError(
            "nothing to profile", expected=f"code, or one of {words}", do="see %stageprof?"
        )
    return asked


def _driven(run: Coroutine[Any, Any, Any]) -> Any:
    """The value of a coroutine that awaits nothing of anybody else."""
    __tracebackhide__ = True
    try:
        run.send(None)
    except StopIteration as end:
        return end.value
    except Raised as carried:
        raise carried.error from None
    raise RuntimeError("a cell that awaits was not awaited")


__all__ = ["NAME", "Words"]
