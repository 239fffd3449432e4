"""What users install: the wheel, the sdist and their metadata."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from stageprof_runtime.version import __version__

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "stageprof": ROOT / "stageprof",
    "stageprof_collectors": ROOT / "collectors/stageprof_collectors",
    "stageprof_runtime": ROOT / "runtime/stageprof_runtime",
    "stageprof_ui": ROOT / "ui/stageprof_ui",
}


@pytest.mark.smoke
@pytest.mark.parametrize("package", PACKAGES)
def test_package_is_imported_from_its_own_folder_and_typed(package: str) -> None:
    assert importlib.import_module(package).__file__ == str(PACKAGES[package] / "__init__.py")
    assert (PACKAGES[package] / "py.typed").is_file()


@pytest.mark.smoke
def test_metadata_has_the_version_of_the_runtime() -> None:
    assert importlib.metadata.version("stageprof") == __version__


@pytest.mark.smoke
def test_environment_satisfies_the_metadata() -> None:
    wanted = [Requirement(text) for text in importlib.metadata.requires("stageprof") or ()]
    needed = [r for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})]

    assert {"dask", "distributed"} <= {r.name for r in needed}
    wrong = [str(r) for r in needed if importlib.metadata.version(r.name) not in r.specifier]
    assert wrong == []


def test_extra_all_brings_the_ui() -> None:
    wanted = [Requirement(text) for text in importlib.metadata.requires("stageprof") or ()]
    ui, everything = (
        {r.name for r in wanted if r.marker and r.marker.evaluate({"extra": extra})}
        for extra in ("ui", "all")
    )

    assert {"bokeh", "holoviews", "panel"} <= ui == everything


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT), cwd=folder)
    return folder


def run(*command: str, cwd: Path) -> str:
    """The output of a command that succeeds away from the checkout."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_wheel_holds_the_four_packages_what_pytest_loads_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())

    assert {name.split("/")[0] for name in names} == {
        *PACKAGES,
        "stageprof_pytest.py",
        f"stageprof-{__version__}.dist-info",
    }
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    for package, folder in PACKAGES.items():
        modules = {f"{package}/{p.relative_to(folder).as_posix()}" for p in folder.rglob("*.py")}
        assert modules <= names


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_sdist_holds_what_the_tests_need(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = set(archive.getnames())

    for name in ("LICENSE", "Makefile", "README.md", "pyproject.toml", "tests/conftest.py"):
        assert f"stageprof-{__version__}/{name}" in names
    assert not [name for name in names if "/.venv" in name or "__pycache__" in name]


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_wheel_works_in_a_fresh_environment_without_extras(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    run(sys.executable, "-m", "venv", "fresh", cwd=tmp_path)
    scripts = tmp_path / "fresh" / ("Scripts" if os.name == "nt" else "bin")
    run(str(scripts / "python"), "-m", "pip", "install", "-q", str(wheel), cwd=tmp_path)

    run(str(scripts / "python"), "-c", f"import {', '.join(PACKAGES)}", cwd=tmp_path)
    assert "demo" in run(str(scripts / "stageprof"), "--help", cwd=tmp_path)
    assert "demo" in run(str(scripts / "python"), "-m", "stageprof", "--help", cwd=tmp_path)
    run(str(scripts / "python"), "-m", "pip", "check", cwd=tmp_path)
