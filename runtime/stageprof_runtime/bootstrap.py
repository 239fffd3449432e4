"""Getting onto schedulers and workers where stageprof is not installed.

A plugin travels as a function by value that carries this package's sources. Where the same
version is installed it is used; elsewhere the sources are imported from memory, and nothing is
written to disk; those of another version that were sent before are let go of, unless they record
at the moment. If even that fails the process gets a plugin that does nothing but say why: a
plugin that fails to unpickle would stop every later worker from starting.
"""

from __future__ import annotations

import functools
import sys
import zlib
from importlib import resources
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from stageprof_runtime.version import __version__

PACKAGE = "stageprof_runtime"
FOLDERS = ("probes", "gil")


@functools.cache
def sources() -> bytes:
    """This package's modules, {name: source}, compressed; read and compressed once."""
    import msgpack

    modules: dict[str, str] = {}
    root = resources.files(PACKAGE)
    for folder, prefix in ((root, PACKAGE), *((root / n, f"{PACKAGE}.{n}") for n in FOLDERS)):
        for file in folder.iterdir():
            if file.name.endswith(".py"):
                name = prefix if file.name == "__init__.py" else f"{prefix}.{file.name[:-3]}"
                modules[name] = file.read_text(encoding="utf-8")
    packed: bytes = msgpack.packb(modules)
    return zlib.compress(packed)


def carry(kind: str, *arguments: Any) -> bytes:
    """The bytes to register as a plugin of this kind ("scheduler" or "worker").

    They name nothing that the receiver must have beyond distributed and cloudpickle.
    """
    made = (kind, arguments, __version__, sources())
    return bytes(cloudpickle.dumps(_Call(_by_value(revive), made), protocol=5))


class _Call:
    """Pickles as a call of a function that is itself pickled by value."""

    def __init__(self, function: bytes, arguments: tuple[Any, ...]) -> None:
        self._function = function
        self._arguments = arguments

    def __reduce__(self) -> Any:
        return _Apply(self._function), self._arguments


class _Apply:
    def __init__(self, function: bytes) -> None:
        self._function = function

    def __reduce__(self) -> Any:
        return cloudpickle.loads, (self._function,)

    def __call__(self, *args: Any) -> Any:  # pickle asks that it can be called
        raise NotImplementedError


@functools.cache
def _by_value(function: Any) -> bytes:
    module = sys.modules[function.__module__]
    cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(function))
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def revive(  # noqa: C901 (it travels alone: what it uses is inside it)
    kind: str, arguments: tuple[Any, ...], version: str, packed: bytes
) -> Any:
    """Make the plugin in the process that unpickles it; uses nothing of this module's globals."""
    import importlib
    import importlib.abc
    import importlib.util
    import sys
    import zlib

    import msgpack

    class FromMemory(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        """Imports the package from the sources that were sent."""

        def __init__(self, modules: dict[str, str]) -> None:
            self.modules = modules

        def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
            if name not in self.modules:
                return None
            package = any(other.startswith(f"{name}.") for other in self.modules)
            return importlib.util.spec_from_loader(name, self, is_package=package)

        def get_code(self, name: str) -> Any:
            return compile(self.modules[name], f"<{name}>", "exec")

        def exec_module(self, module: Any) -> None:
            exec(self.get_code(module.__name__), module.__dict__)  # noqa: S102

    def absent(reason: str) -> Any:
        from distributed.diagnostics import plugin as plugins

        class Absent(plugins.WorkerPlugin):
            """Stands where stageprof could not; tells the scheduler why, and no more."""

            name = arguments[0]

            def setup(self, worker: Any) -> None:
                try:
                    op = f"{arguments[0]}-batch"
                    worker.batched_stream.send({"op": op, "reason": reason})
                except Exception:
                    return

            def teardown(self, worker: Any) -> None:
                # One that closes may be told of the end as well, and complains of what is not there
                if worker.status.name == "closing":
                    worker.plugins[self.name] = self

        return Absent()

    def sent() -> list[Any]:
        """What imports the sources that were sent, of whatever version."""
        return [f for f in sys.meta_path if "stageprof_runtime" in getattr(f, "modules", ())]

    def let_go() -> None:
        """Forget another version that was sent for a recording before, and records no more."""
        process = sys.modules.get("stageprof_runtime.process")
        if not sent() or (process is not None and process.installed()):
            return
        for finder in sent():
            sys.meta_path.remove(finder)
        for name in [n for n in sys.modules if n.partition(".")[0] == "stageprof_runtime"]:
            del sys.modules[name]

    def runtime() -> Any:
        there = sys.modules.get("stageprof_runtime.version")
        if there is not None and there.__version__ != version:
            let_go()
        if importlib.util.find_spec("stageprof_runtime") is None:
            modules = msgpack.unpackb(zlib.decompress(packed))
            sys.meta_path.append(FromMemory(modules))
        found = importlib.import_module("stageprof_runtime.version")
        if found.__version__ != version:
            until = "; it records: try again once it has ended" if sent() else ""
            raise ImportError(
                f"stageprof {found.__version__} is here, {version} at the client{until}"
            )
        return importlib.import_module(f"stageprof_runtime.{kind}_plugin")

    try:
        module = runtime()
        return getattr(module, f"{kind.capitalize()}Probe")(*arguments)
    except BaseException as error:
        if kind == "scheduler":  # the client hears of it, and nothing was registered
            raise RuntimeError(f"stageprof at the scheduler: {error!r}"[:300]) from None
        return absent(f"{type(error).__name__}: {error}"[:300])
