"""What a value is of numpy's, which is not imported for it."""

from __future__ import annotations

import sys
from typing import Any, Final

#: An array of fewer objects is a row of labels, not a column.
FEWEST: Final = 1_000


def of_objects(value: Any) -> bool:
    """Whether it is an array of many Python objects."""
    numpy = sys.modules.get("numpy")
    if numpy is None or type(value) is not numpy.ndarray:
        return False
    return bool(value.dtype.kind == "O" and value.size >= FEWEST)


def is_integer(value: Any) -> bool:
    """Whether it is one of numpy's integers."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and type.__subclasscheck__(numpy.integer, type(value))
