"""The pages that benchmarks write: on what machine, and between which markers."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path


def machine() -> str:
    """What this was measured on."""
    packages = ("dask", "distributed", "numpy", "pandas", "pyinstrument", "stageprof")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    return (
        f"{os.cpu_count()} CPUs ({platform.machine()}), {platform.system()} "
        f"{platform.release().split('-')[0]}, Python {platform.python_version()}, {versions}."
    )


def write(path: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- name -->` and `<!-- /name -->`."""
    whole = path.read_text() if path.exists() else f"<!-- {name} -->\n<!-- /{name} -->\n"
    before, _, rest = whole.partition(f"<!-- {name} -->")
    _, _, after = rest.partition(f"<!-- /{name} -->")
    path.write_text(f"{before}<!-- {name} -->\n{text}\n<!-- /{name} -->{after}")
