"""Code that several rules print: many operations in one function, for each kind of collection."""

from __future__ import annotations

from typing import Final

from stageprof_collectors.site import Collection

_STEPS: Final = """\
def all_steps(piece):  # your operations, on a plain {plain}
    for step in steps:
        piece = step(piece)
    return piece

"""

_APPLIED: Final = {
    Collection.ARRAY: "x = x.map_blocks(all_steps, dtype=x.dtype)",
    Collection.FRAME: "ddf = ddf.map_partitions(all_steps)",
    Collection.CALLS: "import dask\n\nresult = dask.delayed(all_steps)(start)",
}
_PLAIN: Final = {
    Collection.ARRAY: "NumPy array",
    Collection.FRAME: "pandas data frame",
    Collection.CALLS: "value",
}


def one_function(collection: Collection) -> str:
    """Code that does many operations in one: `steps` are the user's functions."""
    return _STEPS.format(plain=_PLAIN[collection]) + _APPLIED[collection]
