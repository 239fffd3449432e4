"""A cell that awaits, though a magic is a plain call: the call itself is awaited then.

IPython runs a cell in its event loop if `await` stands at its top. A magic whose code awaits gives
a coroutine, and what IPython made of the line gets an `await` before it.
"""

from __future__ import annotations

import ast
import re
from typing import Final

from IPython.core.getipython import get_ipython
from IPython.core.interactiveshell import InteractiveShell

from stageprof.magic.cell import will_await
from stageprof.magic.line import HelpWanted, read
from stageprof_runtime.errors import UsageError

_TEXT: Final = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
#: What IPython makes of `x = %stageprof ...` and of `%%stageprof`.
_CALL: Final = re.compile(
    r"^(\s*(?:.*?=\s*)?)"
    rf"(get_ipython\(\)\.run_(?:line|cell)_magic\('stageprof', {_TEXT}(?:, {_TEXT})?\))"
)


def awaited(lines: list[str]) -> list[str]:
    """The lines of a cell as IPython would run them, with `await` where it is needed.

    Raises:
        SyntaxError: the code of a magic is no Python; IPython says so, as of any cell.
    """
    return [_awaited(line) if "_magic('stageprof'" in line else line for line in lines]


def _awaited(line: str) -> str:
    call = _CALL.match(line)
    shell = get_ipython()
    if call is None or shell is None or not _awaits(shell, call[3], call[4]):
        return line
    return f"{call[1]}await {call[2]}{line[call.end() :]}"


def _awaits(shell: InteractiveShell, line: str, cell: str | None) -> bool:
    if cell is not None:
        return will_await(shell, ast.literal_eval(cell), above=1)
    try:
        return will_await(shell, read(ast.literal_eval(line)).code)
    except (UsageError, HelpWanted):  # is said when it is run
        return False


__all__ = ["awaited"]
