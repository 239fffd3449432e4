"""Cells of a notebook: the files that IPython compiles them as, and the numbers that users see.

A traceback of IPython says `In [3]`, though the code's file is `/tmp/ipykernel_41/2903.py`. What it
knows of this is asked when a region ends, and of the client alone: code that was sent to a worker
has the same file there.
"""

from __future__ import annotations

import linecache
import re
import sys
from typing import Final

#: Cells that are told of, the latest ones.
MOST: Final = 1000
#: The name of a mark that says which file a cell is: its number, a blank and the file.
MARK_NAME: Final = "cell"

_NUMBER: Final = re.compile(r"\d{1,9}")


def numbers() -> dict[str, int]:
    """The number of each file that is a cell, in the order of their last execution."""
    found = {file: number_of(file) for file in list(linecache.cache)}
    known = ((file, number) for file, number in found.items() if number is not None)
    return dict(sorted(known, key=lambda item: item[1])[-MOST:])


def number_of(file: str) -> int | None:
    """The number of the cell that a file is; None if it is none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = _NUMBER.search((name_of(file) or ("", ""))[1]) if name_of is not None else None
    return None if found is None else int(found[0])


def told() -> list[str]:
    """The labels of the marks that tell of them."""
    return [f"{number} {file}" for file, number in numbers().items()]


__all__ = ["MARK_NAME", "number_of", "numbers", "told"]
