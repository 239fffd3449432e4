"""Workers with the wrong stageprof, a broken one or none: they join, compute, and are listed."""

from __future__ import annotations

import operator
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from distributed import Client

import clusters
import installed
import remains
import stageprof
from stageprof_runtime.version import __version__

pytestmark = pytest.mark.cluster

#: What is installed on a worker: the start of its package, and its version.
THERE = {
    "older": ("", "0.0.1"),
    "newer": ("", "99.0"),
    "broken": ("raise ImportError('libfoo.so: not found')", __version__),
    "no Python": ("def (:", __version__),
    "leaves": ("raise SystemExit('licence expired')", __version__),
}
#: What the recording says of it.
SAID = {
    "older": f"ImportError: stageprof 0.0.1 is here, {__version__} at the client",
    "newer": f"ImportError: stageprof 99.0 is here, {__version__} at the client",
    "broken": "ImportError: libfoo.so: not found",
    "no Python": "SyntaxError: invalid syntax",
    "leaves": "SystemExit: licence expired",
}


@pytest.mark.nightly
def test_five_of_five_join_and_compute_and_each_says_why_it_is_not_seen(tmp_path: Path) -> None:
    """F8: older, newer, broken in three ways; and one without any, to which it is sent."""
    with ExitStack() as stack:
        line = ("--port", "0", "--no-dashboard")
        address = clusters.address_of(stack.enter_context(clusters.process("scheduler", *line)))
        client = stack.enter_context(Client(address))
        prof = stageprof.profile().start()
        scripts = {kind: tmp_path / kind for kind in (*THERE, "nowhere")}
        for kind, folder in scripts.items():
            folder.mkdir()
            script = (
                installed.another(folder, *THERE[kind])
                if kind in THERE
                else installed.nowhere(folder)
            )
            options = ("--preload", script, "--name", kind)
            stack.enter_context(clusters.worker(address, 1, *options))
        client.wait_for_workers(6, timeout=60)
        # Functions that need no module which is not there.
        assert client.gather(client.map(time.sleep, [0.01] * 300, pure=False)) == [None] * 300
        assert client.gather(client.map(operator.neg, range(60))) == [-i for i in range(60)]
        recording = prof.stop()
        clusters.soon(lambda: remains.everywhere(client) == [], 10)
    workers = recording.workers().set_index("name")
    assert len(workers) == 6
    assert workers["tasks"].min() > 0
    assert workers["instrumented"].to_dict() == {kind: kind == "nowhere" for kind in scripts}
    for kind, reason in SAID.items():
        assert str(workers.loc[kind, "reason"]).startswith(reason)
