"""A check leaves what a program would write as it is: nothing is removed, begun or made longer."""

from __future__ import annotations

import hashlib
import pickle
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import remains
import stageprof
from stageprof_runtime import overwriting


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What was written elsewhere is gone, and so are the wrappers."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    with dask.config.set(scheduler="sync"):
        yield
    assert list(elsewhere.iterdir()) == []
    assert remains.of_process() == []


def lazy(value: int) -> Any:
    return da.full((12,), value, chunks=4)


def dataset(value: int) -> xr.Dataset:
    return xr.Dataset({"a": (("x",), lazy(value)), "b": (("x",), np.full(12, value))})


#: A program that writes a value to a path.
Writes = Callable[[Path, int], Any]

NETCDF: dict[str, Any] = {"engine": "h5netcdf"}
OF_ARRAYS: dict[str, Writes] = {
    "to_hdf5": lambda path, value: da.to_hdf5(str(path), {f"/of_{value}": lazy(value)}),
    "Array.to_hdf5": lambda path, value: lazy(value).to_hdf5(str(path), f"/of_{value}"),
    "to_npy_stack": lambda path, value: da.to_npy_stack(str(path), da.ones(value, chunks=1)),
}


def several(*args: Any, **more: Any) -> None:
    write: Any = xr.save_mfdataset  # looked up when it is called
    write(*args, **more)


OF_NETCDF: dict[str, Writes] = {
    "Dataset": lambda path, value: dataset(value).to_netcdf(path, **NETCDF),
    "DataArray": lambda path, value: dataset(value).a.to_netcdf(path, **NETCDF),
    "DataTree": lambda path, value: xr.DataTree(dataset(value)).to_netcdf(path, **NETCDF),
    "appended": lambda path, value: dataset(value).to_netcdf(path, mode="a", **NETCDF),
    "later": lambda path, value: dask.compute(
        dataset(value).to_netcdf(path, compute=False, **NETCDF)
    ),
    "save_mfdataset": lambda path, value: several([dataset(value)], [path], **NETCDF),
}


def of_store(path: Path) -> Any:
    return pytest.importorskip("zarr").storage.LocalStore(path)


def in_parts(path: Path, value: int) -> None:
    """The outline first, and then a region of it."""
    dataset(value).to_zarr(path, mode="w", compute=False)
    dataset(value).drop_vars("b").to_zarr(path, region={"x": slice(0, 12)})


OF_ZARR: dict[str, Writes] = {
    "Dataset": lambda path, value: dataset(value).to_zarr(path, mode="w"),
    "DataArray": lambda path, value: dataset(value).a.to_zarr(path, mode="w"),
    "of a store": lambda path, value: dataset(value).to_zarr(of_store(path), mode="w"),
    "appended": lambda path, value: dataset(value).to_zarr(
        path, append_dim="x" if value == 2 else None
    ),
    "in parts": in_parts,
    "Array": lambda path, value: lazy(value).to_zarr(path, mode="w"),
}


def files(path: Path) -> dict[str, str]:
    """Relative path -> digest of each file below a path, or of that file."""
    found = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in found}


def is_left(path: Path, writes: Writes) -> None:
    """A check leaves a target that is there as it is, and makes none."""
    for there in (False, True):
        if there:
            writes(path, 1)
        before = files(path)
        found = stageprof.check(lambda: writes(path, 2))
        assert files(path) == before
        assert any("it was stopped there" in why for why in found.not_looked_at)
        assert path.exists() == there


@pytest.mark.parametrize("how", OF_ARRAYS)
def test_what_arrays_are_written_to(how: str, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    is_left(tmp_path / "out", OF_ARRAYS[how])


@pytest.mark.parametrize("how", OF_NETCDF)
def test_files_of_netcdf(how: str, tmp_path: Path) -> None:
    pytest.importorskip("h5netcdf")
    is_left(tmp_path / "out.nc", OF_NETCDF[how])


@pytest.mark.filterwarnings("ignore:Consolidated metadata")  # of zarr 3
@pytest.mark.parametrize("how", OF_ZARR)
def test_stores_of_zarr(how: str, tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    is_left(tmp_path / "out.zarr", OF_ZARR[how])


def test_what_needs_no_dask_is_written(tmp_path: Path) -> None:
    """As all that a program does before it hands something to Dask."""
    pytest.importorskip("h5netcdf")
    path = tmp_path / "out.nc"
    stageprof.check(lambda: dataset(1).drop_vars("a").to_netcdf(path, **NETCDF))
    assert xr.load_dataset(path, **NETCDF).b[0] == 1


def test_with_everything_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "out"
    da.to_npy_stack(str(path), da.ones(1, chunks=1))
    stageprof.check(lambda: da.to_npy_stack(str(path), da.ones(2, chunks=1)), everything=True)
    assert pickle.loads((path / "info").read_bytes())["chunks"] == ((1, 1),)


# -- Parquet --------------------------------------------------------------------------------------


def by_name(*args: Any, **more: Any) -> None:
    dd.to_parquet(*args, **more)  # looked up when it is called


def frame(columns: list[str]) -> Any:
    return dd.from_pandas(pd.DataFrame({"id": range(99), "x": range(99)})[columns], npartitions=4)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask's `to_parquet`
def test_after_a_check_what_took_over_its_writer_writes_anew(tmp_path: Path) -> None:
    """A module that is first imported in the checked function has the wrapper for its own."""
    kept = overwriting.kept()
    taken: Any = dd.to_parquet
    kept()
    for columns in (["id", "x"], ["x"]):
        written = frame(columns).repartition(npartitions=len(columns))
        taken(written, tmp_path / "out", overwrite=True)
    assert [file.name for file in (tmp_path / "out").glob("*")] == ["part.0.parquet"]


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask's `to_parquet`
@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize(
    "how",
    [dd.DataFrame.to_parquet, by_name],
    ids=["method", "function"],
)
def test_tables_of_parquet(how: Any, tmp_path: Path, everything: bool) -> None:
    """Dask removes the folder before it computes; what was checked then wrote nothing."""
    out = tmp_path / "out"
    how(frame(["id", "x"]), out, overwrite=True)
    stageprof.check(lambda: how(frame(["x"]), out, overwrite=True), everything=everything)
    columns = pd.read_parquet(out / "part.0.parquet").columns.tolist()
    assert columns == (["x"] if everything else ["id", "x"])
