"""Code that several rules print: calls in batches, many operations in one function, exchanges."""

from __future__ import annotations

from typing import Final

from stageprof_collectors.findings.calling import PLAIN, Calling
from stageprof_collectors.tables.site import Collection

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

_BATCHES: Final = """\
import dask

def {name}_batch(inputs{names}):
    return [{name}({x}) for x in inputs]  # the plain function, not a delayed one

batches = [inputs[i : i + {k}] for i in range(0, len(inputs), {k})]
parts = dask.compute(*[dask.delayed({name}_batch)(batch{given}) for batch in batches])
results = [result for part in parts for result in part]"""
_FUTURES: Final = """\
def {name}_batch(inputs{names}):
    return [{name}({x}) for x in inputs]

batches = [inputs[i : i + {k}] for i in range(0, len(inputs), {k})]
parts = client.gather(client.map({name}_batch, batches{given}))
results = [result for part in parts for result in part]"""
#: An input is all that one call is given.
_TUPLES: Final = "# each of inputs: the tuple of all that one call is given\n"
_EITHER: Final = (
    "# each of inputs: what one call is given; if that is several, their tuple, and {x}\n"
)

_PIECES: Final = """\
import dask
{imported}

def {name}_batch(inputs):  # {name}: the plain function
    return {joined}([{name}(x) for x in inputs])

batches = [inputs[i : i + {k}] for i in range(0, len(inputs), {k})]
parts = [dask.delayed({name}_batch)(batch) for batch in batches]
# of these {call}"""
_ARRAYS: Final = {
    "imported": "import numpy as np",
    "joined": "np.stack",
    "call": "da.from_delayed each, and da.concatenate",
}
_FRAMES: Final = {
    "imported": "import pandas as pd",
    "joined": "pd.concat",
    "call": "dd.from_delayed",
}

_EXCHANGED: Final = """\
import dask

dask.config.set({{"{key}": "{method}"}})"""


def pieces_in_batches(name: str, k: int, *, frames: bool) -> str:
    """Code that has a function of the user's make `k` pieces of a collection in each task."""
    return _PIECES.format(name=name, k=k, **(_FRAMES if frames else _ARRAYS))


def in_batches(name: str, k: int, calling: Calling = PLAIN) -> str:
    """Code that gives each task `k` calls of a function of the user's instead of one."""
    code = _FUTURES if calling.futures else _BATCHES
    before = _EITHER.format(x=f"{name}(*x)") if calling.several is None else ""
    x, before = ("*x", _TUPLES) if calling.several else ("x", before)
    names = ", **given" if calling.keywords else ""
    given = "".join(f", {each}={each}" for each in calling.keywords)
    return before + code.format(name=name, k=k, x=x + names, names=names, given=given)


def one_function(collection: Collection) -> str:
    """Code that does many operations in one: `steps` are the user's functions.

    None where it is not known of which kind the collection is.
    """
    if collection == Collection.PIECES:
        return ""
    return _STEPS.format(plain=_PLAIN[collection]) + _APPLIED[collection]


def exchanged(method: str, *, arrays: bool) -> str:
    """Code by which Dask exchanges pieces of arrays, or else of frames, by "tasks" or "p2p"."""
    key = "array.rechunk.method" if arrays else "dataframe.shuffle.method"
    return _EXCHANGED.format(key=key, method=method)
