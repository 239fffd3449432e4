"""A dump that is watched: what each object in it took, in seconds and bytes.

Dask's own `distributed.protocol.pickle.dumps` is run with another `pickle` module: its picklers
tell of every object that is not of a builtin type, before they pickle it. What an object took is
what was written until the next one. Dask's function decides as it always does (plain pickle,
then its own pickler, then cloudpickle); each of its attempts is watched, and the bytes are the
same as without us.
"""

from __future__ import annotations

import functools
import io
import pickle
import types
from array import array
from collections.abc import Callable, Iterator
from typing import Any, Final

from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import cloudpickle
from stageprof_runtime.kinds import DATA, STRUCTURE, kind_of

#: So many values of one class, one after another, are noted one by one.
ALIKE: Final = 256

#: Notes of one attempt. There is no time to look at more, and each takes memory until the graph is
#: on its way.
MOST: Final = 300_000

#: (ns, bytes written, buffers handed out, object that comes now)
Note = tuple[int, int, int, object]


class _Plain(pickle.Pickler):
    """The plain pickler, able to be given an attribute."""


class Attempt:
    """One pickler's work: its notes, and the bytes of each buffer that it handed out.

    The numbers of the notes are beside the objects: a tuple for each would have Python look for
    garbage twice as often, which takes longer than all else here.
    """

    def __init__(self) -> None:
        #: the objects that came, one after another, and None at the end
        self.values: list[object] = []
        self._numbers = array("q")
        self.buffers: list[Any] = []
        self.written = 0
        #: whether there were more than are noted
        self.cut = False

    def note(self, written: int, value: object) -> None:
        """An object comes; so much was written before."""
        if self.cut:
            return
        self.cut = len(self.values) >= MOST
        self.values.append(None if self.cut else value)
        self._numbers.extend((now_ns(), written, len(self.buffers)))

    def end(self, file: io.BytesIO) -> None:
        """Note where it stopped."""
        self.written = file.tell()
        self.note(self.written, None)

    def forget(self) -> None:
        """It came to nothing."""
        self.values.clear()
        del self._numbers[:]

    def notes(self, start: int = 0, stop: int | None = None) -> Iterator[Note]:
        """Its notes, or those from one on and before another."""
        stop = len(self.values) if stop is None else min(stop, len(self.values))
        each = iter(self._numbers[3 * start : 3 * stop])
        return zip(each, each, each, self.values[start:stop], strict=False)

    @property
    def ns(self) -> int:
        """How long it took, as far as it was noted."""
        return self._numbers[-3] - self._numbers[0] if self.values else 0

    @functools.cached_property
    def sizes(self) -> list[int]:
        """Bytes of all buffers before the first, the second, ... and in the end of all of them.

        Asked for when the pickler is done.
        """
        total, sums = 0, [0]
        for buffer in self.buffers:
            total += memoryview(buffer).nbytes
            sums.append(total)
        return sums


class Dump:
    """The dump of one graph: its attempts, the last of which is what was sent."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []

    def watching(self, dumps: Callable[..., Any]) -> Callable[..., Any]:
        """The same function as `distributed.protocol.pickle.dumps`, whose work is noted.

        Raises:
            LookupError: `dumps` is not the function that we know.
        """
        plain: Any = dumps
        while _is_ours(plain):
            plain = plain.__wrapped__
        names = getattr(plain, "__globals__", {})
        if type(plain) is not types.FunctionType or names.get("pickle") is not pickle:
            raise LookupError("distributed.protocol.pickle.dumps is another function")
        own: dict[str, Any] = {"pickle": _Module(pickle, self, _Plain)}
        own["cloudpickle"] = _Module(cloudpickle, self, cloudpickle.Pickler)
        own["_DaskPickler"] = self._maker(names["_DaskPickler"])
        copy = types.FunctionType(plain.__code__, names | own, plain.__name__, plain.__defaults__)
        copy.__kwdefaults__ = plain.__kwdefaults__
        return copy

    def _maker(self, base: Any) -> Callable[..., Any]:
        return lambda file, **options: watched(base, file, self._attempt(), options)

    def _attempt(self) -> Attempt:
        self.attempts.append(Attempt())
        return self.attempts[-1]

    def dumps(self, base: Any, plain: Callable[..., Any], x: object, **options: Any) -> Any:
        """What a pickle module's `dumps` returns or raises, noted."""
        buffers: list[Any] = []
        wanted = options.get("buffer_callback") is not None
        mine = options | {"buffer_callback": buffers.append} if wanted else options
        with io.BytesIO() as file:
            attempt = self._attempt()
            try:
                watched(base, file, attempt, mine).dump(x)
            except (RecursionError, MemoryError, pickle.PicklingError) as error:
                if type(error) is pickle.PicklingError and not _too_deep(error):
                    raise
                # Ours takes a little more of either than theirs, which may yet do it.
                attempt.forget()
                return plain(x, **options)
            for buffer in buffers:  # now, for theirs would have handed on all of them again
                options["buffer_callback"](buffer)
            return file.getvalue()


def _is_ours(function: Any) -> bool:
    """Whether a function is a wrapper of stageprof's: what others put around it is left alone."""
    module = str(getattr(function, "__globals__", {}).get("__name__"))
    return module.startswith("stageprof_runtime.") and hasattr(function, "__wrapped__")


def _too_deep(error: BaseException) -> bool:
    """Whether it is what cloudpickle makes of a RecursionError."""
    return isinstance(error.__cause__, RecursionError)


class _Module:
    """A pickle module whose `dumps` is noted; all else is the module's own."""

    def __init__(self, module: Any, dump: Dump, base: Any) -> None:
        self._module = module
        self._dump = dump
        self._base = base

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def dumps(self, x: object, **options: Any) -> Any:
        return self._dump.dumps(self._base, self._module.dumps, x, **options)


def watched(base: Any, file: Any, attempt: Attempt, options: dict[str, Any]) -> Any:
    """A pickler of this class that notes what it is given."""
    buffers, give = attempt.buffers, options.get("buffer_callback")
    if give is not None:

        def taken(buffer: Any) -> Any:
            buffers.append(buffer)
            return give(buffer)

        options = options | {"buffer_callback": taken}
    return _Watched(base(file, **options), attempt, file)


class _Watched:
    """A pickler that tells an attempt of what it pickles.

    What it tells with is an attribute of the pickler, taken away again: a class made for it would
    keep the user's objects until the next garbage collection.
    """

    def __init__(self, pickler: Any, attempt: Attempt, file: io.BytesIO) -> None:
        self._pickler = pickler
        self._attempt = attempt
        self._file = file

    def dump(self, x: object) -> None:
        pickler, attempt = self._pickler, self._attempt
        pickler.reducer_override = noting(pickler, attempt, self._file.tell)
        try:
            pickler.dump(x)
        finally:
            del pickler.reducer_override
            attempt.end(self._file)


def noting(pickler: Any, attempt: Attempt, tell: Callable[[], int]) -> Callable[[object], Any]:
    """What a pickler calls before each object: it notes, and answers as the pickler itself."""
    note = attempt.note
    asks = getattr(pickler, "reducer_override", None)
    many = _Many()

    def noted(value: object) -> Any:
        if not many.alike(value):
            note(tell(), value)
        return NotImplemented

    def noted_first(value: object) -> Any:
        if not many.alike(value):
            note(tell(), value)
        return asks(value)  # type: ignore[misc]

    return noted if asks is None else noted_first


class _Many:
    """Tells where one value after another is of the same class: a list of a million small objects.

    Each note takes time; what those after the first take is as well known from the last note.
    Parts of the graph are always noted, and arrays and frames: a layer may be a thousand chunks.
    """

    __slots__ = ("_kind", "_run", "_skip")

    def __init__(self) -> None:
        self._kind: type | None = None
        self._run = 0
        self._skip = False

    def alike(self, value: object) -> bool:
        """Whether so many of the same class came before that this one need not be noted."""
        if type(value) is not self._kind:
            self._kind, self._run, self._skip = type(value), 0, False
            return False
        if self._skip:
            return True
        self._run += 1
        if self._run == ALIKE:
            self._skip = kind_of(value) not in (STRUCTURE, DATA)
        return False
