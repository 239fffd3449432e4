"""A cell's code, run as IPython runs it: its variables stay, its last expression is its value.

It is compiled with the cell's own line numbers under a name that IPython knows, so that tracebacks
and findings say `In [3]`, line 2.
"""

from __future__ import annotations

import ast
import inspect
from contextlib import suppress
from types import CodeType, TracebackType
from typing import Any, Final, NamedTuple, Self

from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell

Names = dict[str, Any]

_AWAITING: Final = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Code(NamedTuple):
    """What is to be run."""

    #: all but the last expression, and that
    body: CodeType
    last: CodeType | None
    #: whether the value is not to be shown, for the code ends in a semicolon
    silent: bool

    @classmethod
    def of(cls, shell: InteractiveShell, text: str, *, above: int = 0) -> Self:
        """The code of a text, which may hold magics itself.

        Args:
            shell: whose code it is.
            text: what was typed.
            above: lines of the cell that stand above it.

        Raises:
            SyntaxError: it is no Python.
        """
        text, name = _cached(shell, text, above, shell.displayhook.prompt_count)
        compiler: Any = shell.compile  # remembers what cells import from __future__
        with compiler.extra_flags(_AWAITING):
            tree = shell.transform_ast(compiler.ast_parse(text, filename=name))
            body, last = _parted(tree)
            return cls(
                compiler(body, name, "exec"),
                compiler(last, name, "eval") if last is not None else None,
                DisplayHook.semicolon_at_end_of_expression(text),
            )

    @property
    def awaits(self) -> bool:
        """Whether it must be run by an event loop."""
        return any(_is_coroutine(part) for part in (self.body, self.last) if part is not None)

    def run(self, names: Names, local: Names) -> Any:
        """Run it; its value."""
        __tracebackhide__ = True
        eval(self.body, names, local)  # noqa: S307 (what the user typed)
        value = None if self.last is None else eval(self.last, names, local)  # noqa: S307
        return None if self.silent else value

    async def wait(self, names: Names, local: Names) -> Any:
        """The same for code that awaits."""
        __tracebackhide__ = True
        value: Any = None
        for part in (self.body, self.last):
            value = None if part is None else eval(part, names, local)  # noqa: S307
            if part is not None and _is_coroutine(part):
                value = await value
        return None if self.silent else value


def will_await(shell: InteractiveShell, text: str, *, above: int = 0) -> bool:
    """Whether the code of a text, which is about to be run, awaits at its top.

    Raises:
        SyntaxError: it is no Python.
    """
    text, name = _cached(shell, text, above, shell.execution_count)
    return _is_coroutine(compile(text, name, "exec", _AWAITING | shell.compile.flags))


def _cached(shell: InteractiveShell, text: str, above: int, number: int) -> tuple[str, str]:
    """The Python of a text, and the name by which IPython finds its lines."""
    for line in text.splitlines():  # IPython drops what is empty at the top
        if line.strip():
            break
        above += 1
    text = "\n" * above + shell.transform_cell(text)
    return text, shell.compile.cache(text, number)


def _parted(tree: ast.Module) -> tuple[ast.Module, ast.Expression | None]:
    """A module without its last expression, and that."""
    statements = list(tree.body)
    last = statements.pop() if statements and isinstance(statements[-1], ast.Expr) else None
    body = ast.Module(statements, tree.type_ignores)
    return body, ast.Expression(last.value) if isinstance(last, ast.Expr) else None


def _is_coroutine(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_COROUTINE)


def shown_as_the_users(shell: InteractiveShell, error: BaseException) -> None:
    """Let an error that code raised be shown as that of any cell: from the user's frames on.

    IPython asks an exception for its own traceback; it is told once, and forgets it.
    """
    trace = _of_user(error.__traceback__)

    def render() -> list[str]:
        with suppress(Exception):
            del error._render_traceback_  # type: ignore[attr-defined]
        lines: list[str] = shell.InteractiveTB.structured_traceback(
            type(error), error, trace, tb_offset=0
        )
        return lines

    if trace is not None:
        with suppress(Exception):  # one that cannot be written to is shown as IPython does
            error._render_traceback_ = render  # type: ignore[attr-defined]


def _of_user(trace: TracebackType | None) -> TracebackType | None:
    """What follows the frames that run a cell."""
    ours = (Code.run.__code__, Code.wait.__code__)
    while trace is not None:
        if trace.tb_frame.f_code in ours:
            return trace.tb_next
        trace = trace.tb_next
    return None


__all__ = ["Code", "Names", "shown_as_the_users", "will_await"]
