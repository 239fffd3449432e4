"""Data frames of pandas that a graph reads from: their sizes, and their columns of objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pandas as pd

#: Values of a column that are looked at.
VALUES: Final = 200


def sizes(node: Any, number: int) -> tuple[int, int]:
    """Bytes of one and all partitions of a frame that is in the graph itself."""
    frame = _held(node)
    if frame is None:
        return -1, -1
    chosen = _chosen(node)
    each_column = frame.memory_usage(deep=False)
    whole = int(sum(n for name, n in each_column.items() if chosen is None or name in chosen))
    # Of `head` only the first is read.
    each = whole // max(_partitions(node), number, 1)
    return each, each * number


def _partitions(node: Any) -> int:
    """Into how many a frame is cut, of which some may not be read; 0 if that is not known."""
    try:
        return len(node._locations()) - 1
    except Exception:  # another version of Dask
        return 0


def _chosen(node: Any) -> set[str | int] | None:
    """The columns that are read; None if all are."""
    columns = node.operand("columns") if "columns" in type(node)._parameters else None
    if type(columns) is not list or any(type(c) not in (str, int) for c in columns):
        return None
    return {*columns, "Index"}


def _held(node: Any) -> pd.DataFrame | None:
    """The data frame of pandas that an expression reads from, if it holds one."""
    if type(node).__name__ != "FromPandas":
        return None
    data = getattr(node.operands[0], "_data", node.operands[0])
    import pandas as pd

    return data if type(data) is pd.DataFrame else None


def _makes_strings(node: Any) -> bool:
    """Whether Dask makes a dtype of texts of each part that it takes."""
    known = "pyarrow_strings_enabled" in type(node)._parameters
    return known and bool(node.operand("pyarrow_strings_enabled"))


def object_columns(node: Any) -> dict[str, str | None]:
    """Columns of dtype object; what their values are where there are any to look at."""
    from stageprof_runtime.columns import held

    frame = _held(node)
    if frame is not None:
        chosen, objects = _chosen(node), held(frame.head(VALUES * 5))
        read = [c for c in objects if c.dtype == "object" and (chosen is None or c.name in chosen)]
        found, texts = {c.name: c.kind for c in read}, _makes_strings(node)
        return {n: k for n, k in found.items() if not (texts and str(k).startswith("string"))}
    meta = vars(node).get("_meta")
    meta = vars(node).get("meta") if meta is None else meta
    if meta is None and "meta" in type(node)._parameters:
        meta = node.operand("meta")
    if type(meta).__name__ != "DataFrame":
        return {}
    pairs = zip(list(meta.columns), list(meta.dtypes.array), strict=True)
    return {name: None for name, dtype in pairs if type(name) is str and str(dtype) == "object"}
