"""Whose code a function's is, and what a function of pandas or numpy says by its name."""

from __future__ import annotations

import os
from types import CodeType
from typing import Final, NamedTuple

from stageprof_runtime.codes import Codes
from stageprof_runtime.lines import USER as USERS
from stageprof_runtime.lines import kind
from stageprof_runtime.looping import MET
from stageprof_runtime.stem import in_task

#: What numpy and pandas work on where each element is a Python object.
OBJECTS: Final = "objects"

#: Functions of pandas (end of the file's name, name or qualified name) by what they say.
_PANDAS: Final = {
    ("core/frame.py", "iterrows"): "iterrows",
    ("core/frame.py", "itertuples"): "itertuples",
    ("core/apply.py", "apply_series_generator"): "apply",
    ("core/apply.py", "apply_raw"): "apply",
    ("core/apply.py", "SeriesApply.apply_standard"): "Series.apply",
    ("core/algorithms.py", "map_array"): "Series.map",
    ("core/window/rolling.py", "apply_func"): "rolling.apply",
    ("core/frame.py", "_get_value"): "element access",
    ("core/frame.py", "_set_value"): "element access",
    ("core/frame.py", "_ixs"): "element access",
    ("core/series.py", "_get_value"): "element access",
    ("core/series.py", "_ixs"): "element access",
    ("core/series.py", "_set_value"): "element access",
    ("core/generic.py", "xs"): "element access",
    ("core/indexing.py", "_get_label"): "element access",
    ("core/indexing.py", "_setitem_with_indexer"): "element access",
}
#: Functions of numpy that call the user's, by their names.
_NUMPY: Final = {
    "_vectorize_call": "np.vectorize",
    "_vectorize_call_with_signature": "np.vectorize(signature)",
    "apply_along_axis": "np.apply_along_axis",
}
#: The methods of `.str` on columns of objects.
_ON_OBJECTS: Final = "core/strings/object_array.py"
_STDLIB: Final = os.path.dirname(os.__file__) + os.sep
_PACKAGES: Final = ("site-packages", "dist-packages")
#: The standard library's own ways of waiting and importing: not the user's computing.
_WAITING: Final = (
    "threading.py",
    "selectors.py",
    "socket.py",
    "ssl.py",
    "queue.py",
    "subprocess.py",
)

#: How the qualified names begin of methods that `dataclasses` writes and executes, and files that
#: attrs does; and the one name that occurs in what makes a named tuple.
_WRITTEN: Final = "__create_fn__.<locals>."
_ATTRS: Final = "<attrs generated"
_TUPLE: Final = ("_tuple_new",)

#: Where a task begins; the user's, the standard library's, numpy's or pandas', any other library's.
BEGIN, USER, STANDARD, NUMERIC, OTHER = range(5)


class Origin(NamedTuple):
    """Whose code it is, and the loop over rows or elements or "objects" of a function of theirs."""

    whose: int
    loop: str


def is_written(code: CodeType) -> bool:
    """Whether it stands in no file: a method that a library has written for a class."""
    if code.co_qualname.startswith(_WRITTEN) or code.co_filename.startswith(_ATTRS):
        return True
    return code.co_names == _TUPLE and code.co_name == "<lambda>"


def _look_up(code: CodeType) -> Origin:
    file = code.co_filename.replace("\\", "/")
    if in_task(file):
        return Origin(BEGIN, "")
    if "/pandas/core/" in file:
        return Origin(NUMERIC, _of_pandas(file, code))
    if "/numpy/" in file:
        return Origin(NUMERIC, _NUMPY.get(code.co_name, ""))
    if any(part in file for part in _PACKAGES):
        return Origin(NUMERIC if "/pandas/" in file else OTHER, "")
    written = is_written(code)
    if kind(code.co_filename) == USERS and not written:
        return Origin(USER, "")
    plain = file.startswith(_STDLIB.replace("\\", "/")) and not file.endswith(_WAITING)
    standard = written or plain
    return Origin(STANDARD if standard else OTHER, "")


def _of_pandas(file: str, code: CodeType) -> str:
    names = (code.co_name, code.co_qualname)
    if file.endswith(_ON_OBJECTS) or code.co_name == "comp_method_OBJECT_ARRAY":
        return OBJECTS
    return next((v for (f, n), v in _PANDAS.items() if file.endswith(f) and n in names), "")


#: The origin of a function's code.
origin_of: Final = Codes(_look_up, MET).of
