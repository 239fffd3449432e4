"""The user's line: the first frame outside Dask and the libraries built on it.

Whether a file belongs to Dask is asked for every frame of every sample, so the answers are kept
by file name.
"""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar
from types import FrameType
from typing import Final

#: Packages whose frames are never the user's line: Dask, what is built on it, and what carries
#: calls between it and the user.
LIBRARIES: Final = frozenset(
    {
        "dask", "distributed", "xarray", "dask_ml", "xgboost", "lightgbm", "dask_expr", "stageprof",
        "stageprof_runtime", "stageprof_collectors", "toolz", "tlz", "cytoolz", "tornado",
        "numpy", "pandas", "scipy", "skimage", "sklearn", "statsmodels", "geopandas",
        "dask_geopandas", "flox", "zarr", "cloudpickle", "joblib", "sparse", "numbagg",
        "xhistogram", "dask_image", "rioxarray", "pyarrow", "IPython", "ipykernel", "traitlets",
        "coffea", "coiled", "cubed", "cudf", "cupy", "dask_awkward", "dask_cloudprovider",
        "dask_cuda", "dask_cudf", "dask_deltatable", "dask_glm", "dask_histogram", "dask_jobqueue",
        "dask_kubernetes", "dask_mpi", "dask_sql", "datashader", "deltalake", "fsspec", "holoviews",
        "hvplot", "icechunk", "kerchunk", "prefect_dask", "rechunker", "s3fs", "satpy", "stackstac",
        "uproot", "virtualizarr", "xclim", "xesmf", "xgcm", "xrft", "xskillscore",
    }
)  # fmt: skip

_STDLIB: Final = os.path.dirname(os.__file__) + os.sep

#: Whose `main` a process of a cluster calls first: the commands that Dask installs do, and what
#: `multiprocessing` starts processes with.
_STARTS: Final = ("dask.", "distributed.", "multiprocessing.")

#: What Cython was made from says so relative to the folder where it was built.
_CYTHON: Final = (".pyx", ".pxd", ".pxi")

#: The user's line of what was begun on another thread and goes on here, where no frame is theirs.
inherited: Final[ContextVar[tuple[str, int]]] = ContextVar("stageprof_line", default=("", 0))

#: file name -> 0 the user's, 1 a library's, 2 dask's or distributed's
_kinds: dict[str, int] = {}

USER, LIBRARY, DASK = 0, 1, 2


def kind(filename: str) -> int:
    """Whose code a file holds: `USER`, `LIBRARY` or `DASK`."""
    known = _kinds.get(filename)
    if known is None:
        known = _kinds[filename] = _kind(filename)
    return known


def _kind(filename: str) -> int:
    if filename.startswith(("<frozen", "<stageprof_runtime")):  # the latter: sent by `bootstrap`
        return LIBRARY
    if filename.endswith(_CYTHON) and not os.path.exists(filename):
        return LIBRARY
    package = _package(filename)
    if package in ("dask", "distributed"):
        return DASK
    if package in LIBRARIES:
        return LIBRARY
    return LIBRARY if filename.startswith(_STDLIB) and "site-packages" not in filename else USER


def _package(filename: str) -> str:
    """The top-level package that a file belongs to, "" for a script: where __init__.py ends."""
    if filename.startswith("<"):  # no file: a cell of IPython, say
        return ""
    folder, package = os.path.dirname(filename), ""
    while folder and os.path.isfile(os.path.join(folder, "__init__.py")):
        outer, name = os.path.split(folder)
        if outer == folder:  # there is none around it
            break
        folder, package = outer, name
    return package


def user_line(frame: FrameType | None = None) -> tuple[str, int]:
    """File and line of the innermost frame that is the user's, else what is inherited: ("", 0)."""
    found = user_frame(frame or sys._getframe(1))
    return inherited.get() if found is None else (found.f_code.co_filename, found.f_lineno)


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that is the user's, from `frame` outward."""
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    return frame


def is_users(frame: FrameType) -> bool:
    """Whether a frame runs code of the user's."""
    filename = frame.f_code.co_filename
    return (_kinds.get(filename, -1) == USER or kind(filename) == USER) and not _starts(frame)


def _starts(frame: FrameType) -> bool:
    """Whether a frame is what a process of a cluster began with: `python -c`, or a command."""
    if frame.f_back is not None:
        return False
    names = frame.f_globals
    begins = (getattr(names.get(name), "__module__", None) for name in ("main", "spawn_main"))
    return any(type(module) is str and module.startswith(_STARTS) for module in begins)


def called_by_user(frame: FrameType | None) -> str:
    """The name of the function that the user's innermost frame called; "" if no frame is theirs."""
    name = ""
    while frame is not None and not is_users(frame):
        name = frame.f_code.co_name
        frame = frame.f_back
    return name if frame is not None else ""


def in_dask(frame: FrameType | None) -> bool:
    """Whether one of Dask's own frames is on the stack."""
    while frame is not None:
        if kind(frame.f_code.co_filename) == DASK:
            return True
        frame = frame.f_back
    return False
