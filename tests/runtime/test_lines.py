"""The user's line: what starts a process of a cluster is none, and files may be named anyhow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
with stageprof.profile(gil=False) as run:
    {}.stack().compute(scheduler="sync")
print(*run.recording.layers()["file"])
"""
ASKS = "from stageprof_runtime.lines import user_line; print(*user_line())"


@pytest.mark.parametrize(
    ("begins", "said"),
    [
        ("", "<string> 1"),
        ("from multiprocessing.spawn import spawn_main; ", "0"),
        ("from multiprocessing.forkserver import main; ", "0"),
        ("from dask.__main__ import main; ", "0"),
        ("main = print; ", "<string> 1"),
    ],
    ids=["a program", "spawned", "forkserver", "a command of Dask's", "a program with a main"],
)
def test_what_a_worker_began_with_is_not_the_users_program(begins: str, said: str) -> None:
    """Its event loop runs right in that: a call from there is not of a line of "<string>"."""
    asked = [sys.executable, "-c", begins + ASKS]
    told = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == said


def test_a_file_named_from_a_folder_that_is_a_package_is_the_users(tmp_path: Path) -> None:
    """`runpy.run_path("etl.py")` runs such code."""
    for folder in (tmp_path, tmp_path / "pkg", tmp_path / "dask"):
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
    names = ["etl.py", "./etl.py", "pkg/etl.py", "dask/core.py", str(tmp_path / "etl.py")]
    asks = f"from stageprof_runtime.lines import kind; print(*map(kind, {names}))"
    asked = [sys.executable, "-P", "-c", asks]
    told = subprocess.run(
        asked, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=30
    )
    assert told.stdout.split() == ["0", "0", "0", "2", "0"]


@pytest.mark.parametrize(
    ("package", "file"), [("stackstac", "etl.py"), ("my_steps", "__init__.py")]
)
def test_the_line_of_what_a_library_makes_is_where_it_is_called(
    package: str, file: str, tmp_path: Path
) -> None:
    """Also where that is built on Dask itself, and not a package of the user's."""
    made = tmp_path / package / "__init__.py"
    made.parent.mkdir()
    made.write_text("import dask\n\ndef stack(): return dask.delayed(int)()\n")
    program = tmp_path / "etl.py"
    program.write_text(f"import stageprof, {package}\n{PROGRAM.format(package)}")
    asked = [sys.executable, str(program)]
    told = subprocess.run(
        asked, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300
    )
    assert [Path(said).name for said in told.stdout.split()] == [file]
