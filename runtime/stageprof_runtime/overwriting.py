"""What would be written anew stays as it is where nothing is to be written.

Libraries remove what is there, or make a new one without its data, before they have Dask compute
what belongs in it. Until undone they do that in a folder of ours, which is removed then.
"""

from __future__ import annotations

import functools
import inspect
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from dask import is_dask_collection

from stageprof_runtime.arrival import arrived
from stageprof_runtime.patch import Undo, replace, together

#: Where there is what writes Parquet, and with `overwrite` removes what is there first.
_PARQUET: Final = (
    "dask.dataframe.dask_expr.io.parquet", "dask.dataframe.dask_expr", "dask.dataframe",
)  # fmt: skip
_ARRAYS: Final = (("to_zarr", "url"), ("to_hdf5", "filename"), ("to_npy_stack", "dirname"))
_SEVERAL: Final = (("save_mfdataset", "paths"),)
#: module -> its functions and methods that make what they write into, with the argument that names
#: that
_WRITERS: Final = {
    "dask.array.core": _ARRAYS,
    "dask.array": _ARRAYS,
    "xarray.core.dataset": (("Dataset.to_netcdf", "path"), ("Dataset.to_zarr", "store")),
    "xarray.core.dataarray": (("DataArray.to_netcdf", "path"), ("DataArray.to_zarr", "store")),
    "xarray.core.datatree": (("DataTree.to_netcdf", "filepath"), ("DataTree.to_zarr", "store")),
    "xarray.backends.api": _SEVERAL,
    "xarray.backends.writers": _SEVERAL,
    "xarray": _SEVERAL,
}
#: What such a call is given of a target that is there, and what it gets for one that is not.
_OF_NEW: Final = {"mode": "w", "append_dim": None, "storage_options": None}


def kept() -> Undo:
    """Have nothing removed or made from now on, until undone."""
    on = [True]  # modules that were imported meanwhile may have taken wrappers over
    elsewhere = Elsewhere()
    undo = together(
        [
            arrived(_PARQUET, functools.partial(_keeping, on)),
            arrived(_WRITERS, functools.partial(_diverting, on, elsewhere)),
        ]
    )

    def over() -> None:
        on.clear()
        undo()
        elsewhere.remove()

    return over


def _keeping(on: list[bool], _: str, module: ModuleType) -> Iterator[Undo]:
    def make(to_parquet: Callable[..., Any]) -> Callable[..., Any]:
        def written(*args: Any, **kwargs: Any) -> Any:
            if on and kwargs.get("overwrite"):
                kwargs["overwrite"] = False
            return to_parquet(*args, **kwargs)

        return written

    yield replace(module, "to_parquet", make, limited=False)


def _diverting(
    on: list[bool], elsewhere: Elsewhere, name: str, module: ModuleType
) -> Iterator[Undo]:
    for path, argument in _WRITERS[name]:
        *owners, function = path.split(".")
        owner: Any = module
        for part in owners:
            owner = getattr(owner, part, None)
        if hasattr(owner, function):
            make = functools.partial(_diverted, on, elsewhere, argument)
            yield replace(owner, function, make, limited=False)


def _diverted(
    on: list[bool], elsewhere: Elsewhere, argument: str, write: Callable[..., Any]
) -> Callable[..., Any]:
    signature = inspect.signature(write)

    def written(*args: Any, **kwargs: Any) -> Any:
        if on and any(map(_lazy, (*args, *kwargs.values()))):
            call = signature.bind(*args, **kwargs)
            elsewhere.divert(call.arguments, argument)
            args, kwargs = call.args, call.kwargs
        return write(*args, **kwargs)

    return written


class Elsewhere:
    """The folder of what is written in place of something else."""

    def __init__(self) -> None:
        self._folder = ""
        #: name of a target -> that, so that no other gets its identity, and what is written instead
        self._places: dict[object, tuple[object, str]] = {}

    def divert(self, given: dict[str, Any], argument: str) -> None:
        """Have a call write here; `given` are its arguments, of which one names the target."""
        target = given.get(argument)
        if isinstance(target, list | tuple):
            given[argument] = [self._instead(one) for one in target]
        elif given.get("region") is not None:  # a part of what is there, perhaps by such a call
            given[argument] = self._places.get(_name(target), (None, target))[1]
        elif _makes(target):
            given[argument] = self._instead(target)
            given |= {name: new for name, new in _OF_NEW.items() if given.get(name)}

    def _instead(self, target: Any) -> str:
        name = _name(target)
        if name not in self._places:
            self._folder = self._folder or tempfile.mkdtemp(prefix="stageprof-")
            ending = Path(name).suffix if isinstance(name, str) else ""
            place = os.path.join(self._folder, f"{len(self._places)}{ending}")
            self._places[name] = target, place
            self._places[place] = place, place  # a writer may call another one
        return self._places[name][1]

    def remove(self) -> None:
        """Remove all of it."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _name(target: Any) -> object:
    return os.fspath(target) if isinstance(target, str | os.PathLike) else id(target)


def _makes(target: Any) -> bool:
    """Whether it is made; not where it is an array or a file that is there to be filled."""
    return target is not None and not hasattr(target, "shape") and not hasattr(target, "write")


def _lazy(given: Any) -> bool:
    """Whether Dask has to compute some of it."""
    if isinstance(given, list | tuple):
        return any(map(_lazy, given))
    if isinstance(given, dict):
        return any(map(_lazy, given.values()))
    parts = getattr(given, "subtree", ())  # of a tree of xarray's
    return is_dask_collection(given) or any(is_dask_collection(p.to_dataset()) for p in parts)
