"""Other programs on a recording's hosts are told from its own work, and spoil a comparison."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys
import time
from collections.abc import Iterator

import dask
import pytest
from dask import delayed

import stageprof
from compare.made import DUMP, against, runs
from findings.crews import Crewed
from findings.stood import CLIENT, SCHEDULER, Stood, chain
from replay.handmade import ns
from stageprof.renderers import terminal
from stageprof_collectors.comparison.measured import measure
from stageprof_collectors.others import Others, others
from stageprof_collectors.summary import summarize
from stageprof_runtime.event import POOLED, RUN, Place

SECONDS = 2.0


class Hosts(Crewed, Stood):
    """Recordings of two seconds by hand, of hosts and processes that take known parts of them."""

    def busy(self, place: Place | int, cpus: float, of: float = 2) -> None:
        """So many of a host's processors are busy, as this place sees it."""
        self.said(place, 0, "host.busy_s", 5_000.0)
        self.said(place, 1000 * SECONDS, "host.busy_s", 5_000.0 + SECONDS * cpus)
        self.said(place, 0, "host.cpus", of)

    def takes(self, place: Place | int, cpus: float) -> None:
        """A process takes so much of a processor."""
        self.said(place, 0, "process.cpu_s", 7.0)
        self.said(place, 1000 * SECONDS, "process.cpu_s", 7.0 + SECONDS * cpus)

    def others(self) -> Others | None:
        """What others took."""
        return others(self.recording(chain(self, 10, 100 * SECONDS)))


def test_what_the_recorded_processes_take_is_not_others() -> None:
    made = Hosts(2)
    made.busy(CLIENT, 2.0)
    for place, cpus in ((CLIENT, 0.1), (SCHEDULER, 0.2), (0, 0.9), (1, 0.5)):
        made.takes(place, cpus)
    found = made.others()
    assert found is not None
    assert tuple(found) == pytest.approx((0.3, 2))


def test_a_process_that_is_client_and_scheduler_counts_once() -> None:
    made = Hosts(1)
    scheduler = SCHEDULER._replace(pid=CLIENT.pid)
    made._rows[scheduler] = made._rows.pop(SCHEDULER)
    made.busy(CLIENT, 2.0)
    for place in (CLIENT, scheduler):
        made.takes(place, 0.5)
    found = others(made.recording(1000 * SECONDS))
    assert found is not None
    assert found.kept == pytest.approx(1.5)


def test_others_take_nothing_away_where_enough_is_idle() -> None:
    made = Hosts(1)
    made.busy(CLIENT, 40.0, of=64)
    made.takes(0, 1.0)
    assert made.others() == Others(0.0, 64)


def test_what_a_pool_of_processes_ran_is_the_programs_own() -> None:
    made = Hosts(1)
    made.busy(CLIENT, 2.0)
    made.takes(CLIENT, 0.1)
    for i in range(10):
        t = ns(200 * i)
        row = (RUN, i, t, t, t, t + 190_000_000, 4321, 170_000_000, f"{POOLED}4321")
        made._rows[CLIENT].append(row)
    found = made.others()
    assert found is not None
    assert found.kept == pytest.approx(2 - 0.1 - 1.7 / SECONDS)


def test_of_several_hosts_the_busiest_counts() -> None:
    made = Hosts(2)
    made.on_host(1, "elsewhere")
    made.busy(CLIENT, 0.5)
    made.busy(1, 3.9, of=4)
    made.takes(1, 1.0)
    found = made.others()
    assert found is not None
    assert tuple(found) == pytest.approx((2.9, 4))


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 0.0])
def test_numbers_that_cannot_be_say_nothing(value: float) -> None:
    made = Hosts(1)
    made.busy(CLIENT, 1.9, of=value)
    assert made.others() is None
    made = Hosts(1)
    made.said(CLIENT, 0, "host.busy_s", value)
    made.said(CLIENT, 1, "host.busy_s", value)
    made.said(CLIENT, 0, "host.cpus", 2)
    assert made.others() is None


def test_a_recording_without_looks_at_its_host_says_nothing() -> None:
    made = Hosts(1)
    assert made.others() is None
    assert measure(made.recording(100)).others is None


def test_a_summary_says_it_where_it_is_many() -> None:
    for cpus, told in ((0.9, True), (0.1, False)):
        made = Hosts(1)
        made.busy(CLIENT, 1.9)
        made.takes(0, 1.9 - cpus)
        summary = summarize(made.recording(chain(made, 10, 100 * SECONDS)))
        said = f"other programs kept {cpus:.1f} of 2 CPUs busy"
        assert (said in summary.facts) == told
        assert (said in terminal.text(summary)) == told  # and is not cut


# -- in a comparison -------------------------------------------------------------------------------


def test_a_side_on_a_busier_machine_is_named_and_not_judged() -> None:
    quiet, busy = runs(seed=1, others=Others(0.1, 2)), Others(1.4, 2)
    found = against(quiet, runs(seed=2, more={DUMP: 0.2}, others=busy))

    (load,) = found.differences
    assert load.kind == "load"
    assert load.before == ("other programs kept 0.1 of 2 CPUs busy",)
    assert load.after == ("other programs kept 1.4 of 2 CPUs busy",)
    assert (found.unjudged, found.regressions) == ("differ", 0)


@pytest.mark.parametrize("after", [Others(0.3, 2), Others(0.4, 8), None])
def test_a_little_more_of_others_or_what_is_not_known_changes_nothing(after: Others | None) -> None:
    quiet = runs(seed=1, others=Others(0.1, 2))
    found = against(quiet, runs(seed=2, more={DUMP: 0.2}, others=after))

    assert found.differences == ()
    assert found.regressions > 0


def test_a_moment_in_which_others_were_busy_is_no_condition() -> None:
    """One recording of seven: the tests of times see to it."""
    quiet = runs(seed=1, others=Others(0.0, 2))
    head = [*runs(6, seed=2, others=Others(0.0, 2)), *runs(1, seed=3, others=Others(1.9, 2))]

    assert against(quiet, head).differences == ()


# -- for real --------------------------------------------------------------------------------------


@delayed  # type: ignore[untyped-decorator]
def work(i: int) -> int:
    """A fortieth of a second of a processor."""
    end = time.thread_time() + 0.025
    while time.thread_time() < end:
        pass
    return i


@contextlib.contextmanager
def burning(programs: int) -> Iterator[None]:
    """So many others that want a processor each."""
    code = "import os\nprint(flush=True)\nwhile os.getppid() > 1: pass"
    command = [sys.executable, "-c", code]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(programs)]
    try:
        for program in started:
            assert program.stdout is not None
            program.stdout.readline()
        yield
    finally:
        for program in started:
            program.kill()
            program.communicate()


@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="others count all processors of this machine")
def test_programs_that_want_every_processor_are_seen() -> None:
    """What they keep busy is a good part of the machine, and more than without them."""
    seen = []
    for programs in (0, 2 * (dask.system.cpu_count() or 1)):
        with burning(programs), stageprof.profile() as prof:
            dask.compute(*[work(i) for i in range(60)], scheduler="sync")
        seen.append(others(prof.recording))
    quiet, loaded = seen
    assert quiet is not None
    assert loaded is not None
    assert loaded.share > 0.4
    assert loaded.share > quiet.share
