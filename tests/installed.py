"""Preload scripts of processes where stageprof is not installed, or another one is."""

from __future__ import annotations

from pathlib import Path

#: Run first in a process: what can be imported there is as if stageprof had never been installed.
HIDE = """
import importlib, importlib.util, os, sys
there = lambda folder: os.path.isdir(os.path.join(folder or ".", "stageprof_runtime"))
sys.path[:] = [folder for folder in sys.path if not there(folder)]
sys.path_importer_cache.clear()
for name in [name for name in sys.modules if name.startswith("stageprof")]:
    del sys.modules[name]  # a command that is registered with Dask's was imported
importlib.invalidate_caches()
assert importlib.util.find_spec("stageprof_runtime") is None
"""
#: Then another one is there.
OTHER = HIDE + "sys.path.insert(0, {folder!r})\nimportlib.invalidate_caches()\n"


def nowhere(folder: Path) -> str:
    """A preload script of a process where none is installed."""
    path = folder / "hide_stageprof.py"
    path.write_text(HIDE)
    return str(path)


def another(folder: Path, init: str, version: str) -> str:
    """A preload script of a process where a different stageprof is installed."""
    package = folder / "other" / "stageprof_runtime"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(init)
    (package / "version.py").write_text(f'__version__ = "{version}"\n')
    path = folder / "another_stageprof.py"
    path.write_text(OTHER.format(folder=str(package.parent)))
    return str(path)
