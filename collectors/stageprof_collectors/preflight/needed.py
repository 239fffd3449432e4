"""What of a graph is needed for what is asked for: of a slice a few tasks are, and the rest not.

Dask leaves out the rest before it runs; here the same is worked out by the keys in tasks, which
calls nothing of the user's. Larger graphs are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from dask.core import flatten, toposort
from dask.highlevelgraph import MaterializedLayer

from stageprof_collectors.preflight.layers import is_blockwise, output
from stageprof_collectors.preflight.plan import OutOfTimeError, Plan, Watch, plain
from stageprof_runtime.kinds import package_of

#: Tasks up to which it is worked out: some 10 us each.
CULLED: Final = 20_000


def layers_needed(graph: Any, keys: Any, plan: Plan, watch: Watch) -> dict[Any, Any]:
    """The layers of a graph, each with what is needed of it; what was not worked out is said.

    Args:
        graph: of layers.
        keys: what is asked for; None if that is not known.
        plan: told of what cannot be worked out.
        watch: of the time that it may take.

    Raises:
        OutOfTimeError: it takes too long.
    """
    layers = dict(graph.layers)
    if not keys or not _sliced(graph) or not all(map(_tells, layers.values())):
        return layers
    if sum(output(layer) or 0 for layer in layers.values()) > CULLED:
        plan.cannot(f"which tasks slices leave out: there are more than {CULLED:,}")
        return layers
    try:
        return _needed(graph, keys, watch)
    except OutOfTimeError:
        raise
    except Exception as error:  # a layer that is not as Dask's are
        plan.cannot(f"which tasks slices leave out ({plain(error)})")
        return layers


def _sliced(graph: Any) -> bool:
    """Whether parts of something are taken: what was made of all of it may not be needed."""
    return any(str(name).startswith(("getitem-", "blocks-")) for name in graph.layers)


def _tells(layer: Any) -> bool:
    """Whether a layer can tell without being built what it needs."""
    if package_of(type(layer)) != "dask":
        return False
    return is_blockwise(layer) or type(getattr(layer, "mapping", None)) is dict


def _needed(graph: Any, keys: Iterable[Any], watch: Watch) -> dict[Any, Any]:
    wanted, known = set(flatten(list(keys))), graph.get_all_external_keys()
    layers: dict[Any, Any] = {}
    for name in reversed(toposort(graph.layers, dependencies=graph.dependencies)):
        watch.check()
        layer, needs = _of_layer(graph.layers[name], wanted, known)
        if needs:
            layers[name] = layer
            wanted |= set().union(*needs.values())
    return layers


def _of_layer(layer: Any, wanted: set[Any], known: set[Any]) -> tuple[Any, dict[Any, set[Any]]]:
    """What is needed of a layer, and what each of its tasks needs."""
    if is_blockwise(layer):
        found: tuple[Any, dict[Any, set[Any]]] = layer.cull(wanted, ())
        return found
    tasks = layer.mapping
    known = known | tasks.keys()
    needs: dict[Any, set[Any]] = {}
    work = [key for key in tasks if key in wanted]
    while work:
        key = work.pop()
        if key not in needs:
            needs[key] = set(_needs(tasks[key], known))
            work.extend(need for need in needs[key] if need in tasks)
    return MaterializedLayer({key: tasks[key] for key in needs}), needs


def _needs(task: Any, known: set[Any]) -> Iterator[Any]:
    """The keys in a task; of its values only texts and tuples are compared with keys."""
    if package_of(type(task)) == "dask":
        yield from task.dependencies
        return
    stack = [task]
    while stack:
        part = stack.pop()
        if _is_key(part) and part in known:
            yield part
        elif type(part) in (list, tuple):
            stack.extend(part)
        elif type(part) is dict:
            stack.extend(part.values())


def _is_key(value: Any) -> bool:
    if type(value) is tuple:
        return all(type(part) in (str, int) for part in value)
    return type(value) is str
