"""No code comes out of a recording: what loads any is not used, and opening one runs nothing."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from benchmarks.generate import generate
from reliability.enemy import written

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("stageprof", "ui/stageprof_ui", "collectors/stageprof_collectors",
                   "runtime/stageprof_runtime")  # fmt: skip
#: What makes objects or code of bytes.
LOADERS: Final = {
    "pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "yaml",
    "jsonpickle", "runpy", "code", "codeop",
}  # fmt: skip
RUNNERS: Final = {"eval", "exec", "compile", "__import__", "execfile"}
#: Attributes by which the same is had.
ATTRIBUTES: Final = {
    "read_pickle", "allow_pickle", "unsafe_load", "full_load", "Unpickler", "find_class",
    "loads_function",
}  # fmt: skip
#: Where it is meant, and what for; none of these is on the way from a file to a page.
MEANT: Final = {
    "stageprof/magic/cell.py": {"eval", "compile"},  # the cell that the user typed
    "stageprof/program.py": {"exec", "compile"},  # the program that `run` was given
    "stageprof/export/prof.py": {"marshal"},  # to write what `pstats` reads
    "runtime/stageprof_runtime/assignment.py": {"compile"},  # the user's own line, to look at it
    "runtime/stageprof_runtime/bootstrap.py": {"exec", "compile", "cloudpickle"},  # to workers
    "runtime/stageprof_runtime/command.py": {"runpy"},  # `dask stageprof`
    "runtime/stageprof_runtime/compat.py": {"cloudpickle"},  # only its name
    "runtime/stageprof_runtime/gil/program.py": {"compile", "marshal"},  # of ours, for py-spy
    "runtime/stageprof_runtime/pickling.py": {"pickle"},  # to time Dask's own
    "runtime/stageprof_runtime/relay.py": {"pickle"},  # a plugin of Dask's, for workers
}
#: Databases as files: what they hold may be a program (a view, a trigger, an endless query).
DATABASES: Final = {"sqlite3", "duckdb", "sqlalchemy", "apsw", "dbm"}


@cache
def sources() -> dict[str, ast.Module]:
    """Every module of ours, by its path."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return {p.relative_to(ROOT).as_posix(): ast.parse(p.read_text("utf-8")) for p in paths}


def imported(tree: ast.Module) -> Iterator[str]:
    """The names of all modules that a module imports, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def loading(tree: ast.Module) -> set[str]:
    """What in a module makes objects or code of bytes."""
    found = {name.split(".")[0] for name in imported(tree)} & LOADERS
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= {node.func.id} & RUNNERS
        elif isinstance(node, ast.Attribute):
            found |= {node.attr} & ATTRIBUTES
        elif isinstance(node, ast.keyword):
            found |= {node.arg or ""} & ATTRIBUTES
    return found


def module_of(name: str) -> str:
    """`collectors/stageprof_collectors/storage/file.py` -> `stageprof_collectors.storage.file`."""
    parts = name.removesuffix(".py").removesuffix("/__init__").split("/")
    return ".".join(parts[parts[0] in ("ui", "collectors", "runtime") :])


def reached(starts: Iterable[str], trees: dict[str, ast.Module]) -> set[str]:
    """The files that modules import, and those that they import."""
    files = {module_of(name): name for name in trees}
    found, todo = set[str](), list(starts)
    while todo:
        module = todo.pop()
        if module in files and files[module] not in found:
            found.add(files[module])
            todo += imported(trees[files[module]])
    return found


def test_what_loads_code_is_used_nowhere_but_where_it_is_meant() -> None:
    """B10: in no module of ours but those above, each with its reason."""
    found = {name: loading(tree) for name, tree in sources().items()}
    assert {name: what for name, what in found.items() if what} == MEANT


def test_what_reads_a_recording_reaches_no_loader() -> None:
    """B10: from opening to the pages, and what of the runtime is imported for that."""
    trees = sources()
    reading = {name: tree for name, tree in trees.items() if name.startswith(("coll", "ui"))}
    starts = ("stageprof_collectors.recording", "stageprof_collectors.storage.inspection",
              "stageprof_collectors.storage.flight", "stageprof_ui.app", "stageprof_ui.report",
              "stageprof_ui.shelf")  # fmt: skip
    files = reached(starts, reading)
    assert len(files) > 100
    beyond = {module_of(n): n for n in trees if n.startswith("runtime")}
    files |= {beyond[m] for name in files for m in imported(trees[name]) if m in beyond}
    assert not files & MEANT.keys()


def test_no_database_is_a_recording() -> None:
    """T14: no SQL is spoken to a file of anybody's."""
    for name, tree in sources().items():
        assert not {word.split(".")[0] for word in imported(tree)} & DATABASES, name


def test_no_folder_is_left_on_workers() -> None:
    """T25: what a cluster needs goes there by value; `UploadDirectory` leaves files behind."""
    names = {"UploadDirectory", "upload_file", "UploadFile"}
    for path, tree in sources().items():
        used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        used |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        used |= {word.rpartition(".")[2] for word in imported(tree)}
        assert not used & names, path


_AUDIT: Final = """
import sys
import stageprof
from stageprof.renderers import document, markdown
from stageprof_collectors.storage.inspection import dump
from stageprof_collectors.summary import summarize

def everything(path):
    recording = stageprof.open(path)
    for table in ("stages", "steps", "computations", "layers", "tasks", "objects", "samples",
                  "workers", "findings_frame", "critical_path", "coverage", "innocence", "lines",
                  "places"):
        getattr(recording, table)()
    str(recording), recording._repr_html_(), recording._repr_markdown_()
    document.text(recording, stageprof.configuration.settings_of())
    list(dump(path))

everything(sys.argv[1])  # what is imported and compiled once
events = []
sys.addaudithook(lambda name, arguments: events.append((name, arguments)))
everything(sys.argv[1])
seen = list(events)
BAD = ("pickle.", "marshal.", "exec", "compile", "import", "subprocess.", "os.system", "os.exec",
       "os.fork", "os.spawn", "os.posix_spawn", "socket.", "ctypes.dlopen", "urllib.", "shutil.",
       "os.remove", "os.rename", "os.mkdir", "sqlite3.", "webbrowser.", "code.__new__")
print([event for event in seen if event[0].startswith(BAD)])
paths = [str(a[0]) for n, a in seen if n == "open" and not isinstance(a[0], int)]
ours = (".stageprof", "pyproject.toml")
installed = (sys.prefix, sys.base_prefix)  # the list of packages that bring rules of their own
print([path for path in paths if not path.endswith(ours) and not path.startswith(installed)])
"""


@pytest.mark.parametrize(
    "which", [pytest.param("an ordinary one", marks=pytest.mark.nightly), "an enemy's"]
)
def test_reading_and_judging_runs_nothing_from_a_recording(tmp_path: Path, which: str) -> None:
    """B10: an audit hook sees nothing unpickled, no code made or run, no other file or process."""
    path = tmp_path / "a.stageprof"
    if which == "an ordinary one":
        generate(path, tasks=200)
    else:
        written(path)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _AUDIT, path],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == ["[]", "[]"]
