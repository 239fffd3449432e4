"""The words that are everybody's: Python's, the public libraries', and those stageprof knows.

What is not among them is the user's, and replaced where a recording is redacted. Rules look for
names that Dask gives; they are read from stageprof's own source, so that none is forgotten.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import keyword
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Final

from stageprof_runtime.lines import LIBRARIES

#: A word: it begins and ends with a letter or digit, and underscores may stand within.
WORD: Final = re.compile(r"[^\W_](?:\w*[^\W_])?")

#: Packages whose texts in quotes are read: names that rules look for, marks, steps, the formats.
_OURS: Final = ("stageprof_runtime", "stageprof_collectors", "stageprof")
#: A longer text is a sentence for people.
_NAME_WORDS: Final = 3

#: Modules, and classes in them, whose attributes give keys and layers their names.
_THEIRS: Final = (
    "dask._expr", "dask.array", "dask.array.Array", "dask.array._array_expr", "dask.array.chunk",
    "dask.array.core", "dask.array.creation", "dask.array.einsumfuncs", "dask.array.fft",
    "dask.array.linalg", "dask.array.ma", "dask.array.overlap", "dask.array.percentile",
    "dask.array.random", "dask.array.rechunk", "dask.array.reductions", "dask.array.reshape",
    "dask.array.routines", "dask.array.slicing", "dask.array.stats", "dask.array.ufunc",
    "dask.array.utils", "dask.array.wrap", "dask.bag", "dask.bag.Bag", "dask.bag.chunk",
    "dask.bag.core", "dask.base", "dask.dataframe", "dask.dataframe.DataFrame",
    "dask.dataframe.Series", "dask.dataframe.dask_expr._concat",
    "dask.dataframe.dask_expr._cumulative", "dask.dataframe.dask_expr._expr",
    "dask.dataframe.dask_expr._groupby", "dask.dataframe.dask_expr._merge",
    "dask.dataframe.dask_expr._quantiles", "dask.dataframe.dask_expr._reductions",
    "dask.dataframe.dask_expr._repartition", "dask.dataframe.dask_expr._rolling",
    "dask.dataframe.dask_expr._shuffle", "dask.dataframe.dask_expr.io.io",
    "dask.dataframe.dask_expr.io.parquet", "dask.dataframe.groupby", "dask.dataframe.methods",
    "dask.dataframe.multi", "dask.dataframe.partitionquantiles", "dask.dataframe.shuffle",
    "dask.delayed", "numpy", "numpy.ndarray", "pandas", "pandas.DataFrame",
)  # fmt: skip

#: What stands in the paths and names of any installation.
_COMMON: Final = (
    "py", "lib", "lib64", "site", "packages", "dist", "usr", "local", "opt", "main", "module",
    "lambda", "locals", "listcomp", "genexpr", "dictcomp", "ipykernel", "tcp", "tls", "inproc",
    "ucx", "localhost", "client", "scheduler", "worker", "from", "delayed", "finalize",
    "MainThread", "Thread", "ThreadPoolExecutor", "Dask", "Default", "Threads", "Offload", "IO",
    "loop", "Actor",
)  # fmt: skip

#: Of a private folder's names these stay; anything else may be somebody's.
FOLDERS: Final = frozenset(
    {
        "home", "Users", "root", "tmp", "usr", "local", "opt", "var", "lib", "lib64", "bin", "mnt",
        # By these a library is told from the user's code, whichever it is.
        "site", "dist", "packages", "python3",
    }
)  # fmt: skip
#: Packages that anybody may have installed.
_PUBLIC: Final = LIBRARIES | {
    "PIL", "aiohttp", "boto3", "botocore", "fsspec", "gcsfs", "h5netcdf", "h5py", "lightgbm",
    "matplotlib", "netCDF4", "numba", "numcodecs", "pyarrow", "rasterio", "requests", "s3fs",
    "scipy", "skimage", "sklearn", "sqlalchemy", "tensorflow", "torch", "urllib3", "xgboost",
    "zarr",
}  # fmt: skip


@cache
def vocabulary() -> frozenset[str]:
    """Words that a redacted recording keeps."""
    python = {*keyword.kwlist, *dir(builtins), *sys.stdlib_module_names}
    theirs = {name for path in _THEIRS for name in _attributes(path)}
    known = {*python, *theirs, *_COMMON, *_ours()}
    return frozenset(word for name in known for word in WORD.findall(name))


def public(file: str) -> int:
    """Where in a path the part begins that is the same in every installation; -1: it is private."""
    plain = file.replace("\\", "/")
    if plain.startswith("<frozen "):
        return 0
    for folder in ("/site-packages/", "/dist-packages/"):
        at = plain.rfind(folder)
        if at >= 0:
            within = plain[at + len(folder) :]
            package = within.partition("/")[0].removesuffix(".py")
            return at + 1 if package in _PUBLIC else -1
    return _standard(plain)


def _standard(file: str) -> int:
    """The same for Python's own library: `.../lib/python3.12/threading.py`."""
    parts = PurePosixPath(file).parts
    for i, part in enumerate(parts[:-1]):
        if part.startswith("python3.") and i and parts[i - 1] in ("lib", "lib64"):
            module = parts[i + 1].removesuffix(".py")
            known = module in vocabulary() and module not in ("site-packages", "dist-packages")
            return file.index(f"/{part}/") + 1 if known else -1
    return -1


def _attributes(path: str) -> Iterator[str]:
    """Names in a module or class, and as Dask writes the names of its expressions."""
    yield from path.split(".")
    try:
        owner: object = importlib.import_module(path)
    except ImportError:  # a class; or this version of Dask does not have it
        module, _, name = path.rpartition(".")
        try:
            owner = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            return
    for name in dir(owner):
        yield name
        yield name.lower()


def _ours() -> Iterator[str]:
    for package in _OURS:
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            for path in Path(folder).rglob("*.py"):
                yield path.stem
                yield from _constants(ast.parse(path.read_text()))


def _constants(tree: ast.AST) -> Iterator[str]:
    """The short texts in quotes of a program: names, and no sentences."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _short(node.value)


def _short(text: str) -> Iterable[str]:
    words = text.split()
    return words if len(words) <= _NAME_WORDS else ()
