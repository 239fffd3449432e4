"""Steps `compress`, `decompress`: what crosses a comm in fewer bytes than it has.

Most programs compress nothing, and are asked nothing: what is wrapped is what does it, of each way
that Dask knows, and not the question for each message whether to. Results that are written to disk
are compressed by the same functions, and are `spill`'s.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stageprof_runtime.carried import here, loading, share
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import place
from stageprof_runtime.context import inside
from stageprof_runtime.guard import Watch, caught
from stageprof_runtime.patch import Emit, Undo, observe_item, together
from stageprof_runtime.stage import STEP


def install(emit: Emit) -> Undo:
    """Time what compresses and decompresses in messages."""
    owner, name = place("protocol.compressions")
    known = getattr(owner, name)
    names = [name for name, compression in known.items() if compression.name]
    make = functools.partial(_timed, emit)
    return together([observe_item(known, name, make) for name in names])


def _timed(emit: Emit, compression: Any, watch: Watch) -> Any:
    """One way to compress, timed."""
    return compression._replace(
        compress=_packing(emit, _compressed, compression.compress, watch),
        decompress=_packing(emit, _decompressed, compression.decompress, watch),
    )


def _packing(
    emit: Emit, told: Callable[..., None], function: Callable[..., Any], watch: Watch
) -> Callable[..., Any]:
    """Compression or decompression in a message, told of by `told`."""

    @functools.wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        if watch.disabled or (here.dump is None and here.load is False):
            return function(*args, **kwargs)
        start = now_ns()
        result = function(*args, **kwargs)
        stop = now_ns()
        try:
            told(emit, inside.at[0] or "worker", start, stop)
            watch.calls += 1
            watch.took(now_ns() - stop)
        except BaseException as error:
            caught(error, watch)
        return result

    return timed


def _compressed(emit: Emit, role: str, start: int, stop: int) -> None:
    emit.span(role, STEP["compress"], start, stop)
    if here.dump is not None and here.dump.last is not None:
        share(emit, role, STEP["compress"], here.dump.last, start, stop)


def _decompressed(emit: Emit, role: str, start: int, stop: int) -> None:
    emit.span(role, STEP["decompress"], start, stop)
    if (carried := loading()) is not None:
        carried.before.append((start, stop))
