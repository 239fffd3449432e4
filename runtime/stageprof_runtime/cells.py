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
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    if name_of is None:
        return {}
    found: dict[str, int] = {}
    for file in list(linecache.cache):
        number = _NUMBER.search((name_of(file) or ("", ""))[1])
        if number is not None:
            found[file] = int(number[0])
    return dict(sorted(found.items(), key=lambda item: item[1])[-MOST:])


def told() -> list[str]:
    """The labels of the marks that tell of them."""
    return [f"{number} {file}" for file, number in numbers().items()]


__all__ = ["MARK_NAME", "numbers", "told"]
