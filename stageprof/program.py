"""The user's program, run in this process as `python` itself would have run it.

Dask's nannies and multiprocessing start processes that import the main module again, by the
path or name that `__main__` gives; so `__main__`, `sys.argv` and `sys.path` must be the program's.
Afterwards `sys.argv` and `sys.path` are ours again.
"""

from __future__ import annotations

import atexit
import builtins
import importlib.util
import io
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.machinery import BuiltinImporter, ModuleSpec, PathFinder, SourceFileLoader
from itertools import accumulate
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from stageprof_runtime.errors import UsageError


class NotRunnable(UsageError):
    """There is no program where the user said; known at times only once it is looked for."""


@dataclass(frozen=True)
class Surroundings:
    """`sys.argv` and `sys.path` as they were at some time."""

    argv: tuple[str, ...] = field(default_factory=lambda: tuple(sys.argv))
    path: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))

    def put_back(self) -> None:
        """Make them so again; they stay the same lists."""
        sys.argv[:] = self.argv
        sys.path[:] = self.path


@dataclass(frozen=True)
class Program:
    """What to run: its name for people, its arguments, and how to find its code.

    Attributes:
        name: the script's file name, the module's name, or "-c".
        argv: what `sys.argv` will be.
        folder: what `sys.path` begins with; None leaves the path alone.
        load: fills the attributes of `__main__` and gives the code; what it raises is the
            program's own error.
        before: what is put back after the run.
    """

    name: str
    argv: tuple[str, ...]
    folder: str | None
    load: Callable[[ModuleType], CodeType]
    before: Surroundings = field(default_factory=Surroundings)

    def prepare(self) -> ModuleType:
        """Make this process the program's: `sys.argv` and an empty `__main__`."""
        main = ModuleType("__main__")
        main.__dict__.update(__builtins__=builtins, __annotations__={}, __spec__=None)
        main.__dict__.update(__package__=None, __cached__=None)
        sys.modules["__main__"] = main
        sys.argv[:] = self.argv
        return main

    def run(self, main: ModuleType) -> None:
        """Run it with its own `sys.path`; whatever it raises is raised.

        Then `sys.argv` and `sys.path` are put back, but not for what outlives the program: threads
        that it leaves and a hook for errors keep its own, and so does what is called at exit.
        """
        threads, hook = set(threading.enumerate()), sys.excepthook
        if self.folder is not None and not sys.flags.safe_path:
            sys.path[:1] = [self.folder]
        try:
            code = self.load(main)
            exec(code, main.__dict__)  # noqa: S102 (to run it is what we were asked for)
        finally:
            if threads.issuperset(threading.enumerate()) and sys.excepthook is hook:
                atexit.register(Surroundings().put_back)  # the last registered is called first
                self.before.put_back()


def script(path: str, args: Sequence[str]) -> Program:
    """`python path args`; a folder or a zip file with a `__main__.py` will do, too.

    Raises:
        UsageError: there is no such script.
    """
    where = str(Path(path).absolute())
    name = Path(path).name or Path(path).resolve().name  # of "." there is none
    if Path(path).is_dir() or path.endswith((".zip", ".pyz")):
        spec = _main_of(where)
        return Program(name, (path, *args), where, lambda main: _code_of(main, spec))
    _check_readable(path)
    # `where` is absolute, as Python's since 3.9: workers start in other folders.
    folder = str(Path(path).resolve().parent)
    return Program(name, (path, *args), folder, lambda main: _script(main, where))


def module(name: str, args: Sequence[str]) -> Program:
    """`python -m name args`; of a package its `__main__`.

    Raises:
        UsageError: there is no such module (where a package finds modules itself, only `run` can
            know).
    """
    if name.endswith(".py"):  # its module cannot be called so; it would be a submodule `py`
        raise UsageError(
            f"-m {name}", expected="the name of a module", do=f"leave out -m, or the .py of {name}"
        )
    here = str(Path.cwd())
    missing = _missing(name, [here, *sys.path])
    if missing:
        raise _no_module(missing)
    return Program(name, ("-m", *args), here, lambda main: _module(main, name))


def _missing(name: str, path: list[str]) -> str:
    """What is not there of a module that is to be run; "" if it is, or only importing would tell.

    Nothing is imported, for that is the program's: it is to be recorded.
    """
    try:
        for part in (*accumulate(name.split("."), "{}.{}".format), f"{name}.__main__"):
            spec = _unimported(part, path)
            if spec is None or (spec.submodule_search_locations is None and len(part) < len(name)):
                return max(part, name, key=len)
            if spec.submodule_search_locations is None or _finds_more(spec):
                return ""
            path = list(spec.submodule_search_locations)
    except Exception:  # a namespace in another, of which only importing tells where it is
        return ""
    return ""


def _unimported(name: str, path: list[str]) -> ModuleSpec | None:
    found = PathFinder.find_spec(name, path)
    if found is not None:
        return found
    if "." not in name:
        return _elsewhere(name)
    specs = (finder.find_spec(name, path) for finder in sys.meta_path)
    return next((spec for spec in specs if spec is not None), None)


def _elsewhere(name: str) -> ModuleSpec | None:
    """What a finder knows that asks no path, as those of editable installs."""
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


def _finds_more(package: ModuleSpec) -> bool:
    """Whether a package says itself where its modules are, once it is imported."""
    loader: Any = package.loader
    if loader is None:  # a folder without code
        return False
    code: CodeType | None = loader.get_code(package.name)
    return code is None or not {"__path__", "declare_namespace"}.isdisjoint(code.co_names)


def text(source: str, args: Sequence[str]) -> Program:
    """`python -c source args`."""
    return Program("-c", ("-c", *args), "", lambda main: _compiled(main, source))


def _check_readable(path: str) -> None:
    if not Path(path).is_file():
        seen = f"cannot run {path} ({'not a file' if Path(path).exists() else 'no such file'})"
        raise UsageError(seen, expected="a Python script", do="check the path, or use -m MODULE")
    if not os.access(path, os.R_OK):
        raise UsageError(f"cannot read {path} (permission denied)", do="check its permissions")


def _script(main: ModuleType, where: str) -> CodeType:
    main.__dict__.update(__file__=where, __loader__=SourceFileLoader("__main__", where))
    with io.open_code(where) as file:
        return _compile(file.read(), where)


def _compiled(main: ModuleType, source: str) -> CodeType:
    main.__dict__.update(__loader__=BuiltinImporter)
    del main.__dict__["__cached__"]
    return _compile(source, "<string>")


def _compile(source: str | bytes, name: str) -> CodeType:
    # Not with this module's own `from __future__ import annotations`.
    code: CodeType = compile(source, name, "exec", dont_inherit=True)
    return code


def _spec_of(name: str) -> ModuleSpec:
    spec = _find(name)
    package = spec.submodule_search_locations is not None
    return _find(f"{name}.__main__") if package else spec


def _find(name: str) -> ModuleSpec:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise  # something that a package of the program imports
        spec = None
    if spec is None:
        raise _no_module(name)
    return spec


def _no_module(name: str) -> NotRunnable:
    return NotRunnable(f"no module {name}", expected="one to run", do="check the name after -m")


def _main_of(path: str) -> ModuleSpec:
    spec = PathFinder.find_spec("__main__", [path])
    if spec is None:
        raise NotRunnable(f"no __main__.py in {path}", expected="a Python program")
    return spec


def _module(main: ModuleType, name: str) -> CodeType:
    spec = _spec_of(name)
    sys.argv[0] = spec.origin or name
    return _code_of(main, spec)


def _code_of(main: ModuleType, spec: ModuleSpec) -> CodeType:
    """Make `__main__` the module of a spec, as `python -m` does; its code."""
    loader: Any = spec.loader
    code: CodeType | None = loader.get_code(spec.name) if hasattr(loader, "get_code") else None
    if code is None:
        raise NotRunnable(f"{spec.name} cannot be run (it has no Python code)")
    main.__dict__.update(__file__=spec.origin, __cached__=spec.cached, __loader__=loader)
    main.__dict__.update(__package__=spec.parent, __spec__=spec)
    return code
