"""Other programs on a recording's hosts are told from its own work, and spoil a comparison."""

from __future__ import annotations

import contextlib
import math
import os
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
from stageprof_collectors.others import Others, beside, others
from stageprof_collectors.recording import Recording
from stageprof_collectors.summary import summarize
from stageprof_runtime.event import POOLED, RUN, SAMPLE, Place

SECONDS = 2.0


class Hosts(Crewed, Stood):
    """Recordings of two seconds by hand, of hosts and processes that take known parts of them."""

    def busy(self, place: Place | int, cpus: float, of: float = 2) -> None:
        """So many of a host's processors are busy, as this place sees it."""
        self._sum(place, "host.busy_s", 5_000.0, cpus, (0, SECONDS))
        self.said(place, 0, "host.cpus", of)

    def takes(
        self, place: Place | int, cpus: float, during: tuple[float, float] = (0, SECONDS)
    ) -> None:
        """A process takes so much of a processor; it is looked at twice, at these seconds."""
        self._sum(place, "process.cpu_s", 7.0, cpus, during)

    def _sum(
        self, place: Place | int, name: str, first: float, rate: float, at: tuple[float, float]
    ) -> None:
        for t in at:
            self.said(place, 1000 * t, name, first + rate * t)

    def also(self, place: Place) -> Place:
        """One more place."""
        self._rows[place] = []
        return place

    def whole(self) -> Recording:
        """The recording; those of which nothing was said take nothing."""
        end = chain(self, 10, 100 * SECONDS)
        for place, rows in self._rows.items():
            if not any(row[0] == SAMPLE and row[2] == "process.cpu_s" for row in rows):
                self.takes(place, 0.0)
        return self.recording(end)

    def others(self) -> Others | None:
        """What others took."""
        return others(self.whole())

    def kept(self) -> float:
        """How many processors they kept busy."""
        found = self.others()
        assert found is not None
        return found.kept


def test_what_the_recorded_processes_take_is_not_others() -> None:
    made = Hosts(2)
    made.busy(CLIENT, 2.0)
    for place, cpus in ((CLIENT, 0.1), (SCHEDULER, 0.2), (0, 0.9), (1, 0.5)):
        made.takes(place, cpus)
    found = made.others()
    assert found is not None
    assert tuple(found) == pytest.approx((0.3, 2, True))


def test_a_process_that_is_client_and_worker_counts_once() -> None:
    made = Hosts(1)
    made.busy(CLIENT, 2.0)
    for place in (CLIENT, made.also(made._workers[0]._replace(name="in it", pid=CLIENT.pid))):
        made.takes(place, 0.5)
    assert made.kept() == pytest.approx(1.5)


def test_a_process_that_is_two_workers_in_turn_counts_for_all_of_the_time() -> None:
    made = Hosts(1)
    made.busy(CLIENT, 2.0)
    again = made.also(made._workers[0]._replace(name="tcp://host:99", life=2))
    made.takes(0, 1.0, (0, 1))
    made.takes(again, 1.0, (1.1, SECONDS))
    assert made.kept() == pytest.approx(1.0)


def test_a_process_that_is_looked_at_later_than_others_is_not_taken_for_one_of_others() -> None:
    """It took as much before its first look: what is compared is the time since."""
    made = Hosts(1)
    made.busy(CLIENT, 1.2)
    made.takes(CLIENT, 0.1)
    made.takes(0, 1.0, (1, 1.9))
    assert made.kept() == pytest.approx(0.1)


@pytest.mark.parametrize("during", [(1.9, SECONDS), (1, 1)])
def test_nothing_is_said_where_a_process_was_hardly_looked_at(during: tuple[float, float]) -> None:
    made = Hosts(1)
    made.busy(CLIENT, 1.2)
    made.takes(0, 1.0, during)
    assert made.others() is None


def test_nothing_is_said_where_a_process_was_not_looked_at() -> None:
    made = Hosts(1)
    made.busy(CLIENT, 1.2)
    made.takes(CLIENT, 0.1)
    assert others(made.recording(1000 * SECONDS)) is None


def test_containers_on_one_machine_are_not_others_to_one_another() -> None:
    """Each has a name of its own, and the kernel tells all of them of the same processors."""
    made = Hosts(2)
    made.on_host(1, "another-name")
    made.busy(CLIENT, 1.9)
    made.busy(1, 1.9)
    made.takes(0, 0.9)
    made.takes(1, 0.9)
    assert made.kept() == pytest.approx(0.1)


def test_processes_of_containers_with_one_name_count_each() -> None:
    """The first process of each has the number 1."""
    made = Hosts(1)
    made.busy(CLIENT, 2.0)
    twin = made.also(made._workers[0]._replace(name="tcp://host:99"))
    made.takes(0, 0.9)
    made._sum(twin, "process.cpu_s", 90.0, 0.9, (0, SECONDS))
    assert made.kept() == pytest.approx(0.2)


def test_others_do_not_matter_where_enough_is_idle() -> None:
    made = Hosts(1)
    made.busy(CLIENT, 40.0, of=64)
    made.takes(0, 1.0)
    found = made.others()
    assert found is not None
    assert tuple(found) == pytest.approx((39.0, 64, False))
    assert not found.many


def test_what_a_pool_of_processes_ran_is_the_programs_own() -> None:
    made = Hosts(1)
    made.busy(CLIENT, 2.0)
    made.takes(CLIENT, 0.1)
    for i in range(10):
        t = ns(200 * i)
        row = (RUN, i, t, t, t, t + 190_000_000, 4321, 170_000_000, f"{POOLED}4321")
        made._rows[CLIENT].append(row)
    assert made.kept() == pytest.approx(2 - 0.1 - 1.7 / SECONDS)


def test_of_several_hosts_that_counts_of_which_others_took_most() -> None:
    made = Hosts(2)
    made.on_host(1, "elsewhere")
    made.busy(CLIENT, 0.5)
    made._sum(1, "host.busy_s", 9_000.0, 3.9, (0, SECONDS))
    made.said(1, 0, "host.cpus", 4)
    made.takes(1, 1.0)
    found = made.others()
    assert found is not None
    assert (found.kept, found.cpus) == pytest.approx((2.9, 4))


def test_each_host_has_what_others_took_of_it() -> None:
    made = Hosts(2)
    made.on_host(1, "elsewhere")
    made.busy(CLIENT, 0.5)
    made.busy(1, 2.0)
    made.takes(1, 0.25)
    recording = made.whole()
    hosts = [place.host for place in recording.store.places]
    found = {hosts[places[0]]: one for places, one in beside(recording)}
    assert {host: one.full for host, one in found.items()} == {"host": False, "elsewhere": True}
    assert (found["host"].kept, found["elsewhere"].kept) == pytest.approx((0.5, 1.75))


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize("name", ["host.busy_s", "process.cpu_s", "host.cpus"])
def test_numbers_that_cannot_be_say_nothing(name: str, value: float) -> None:
    made = Hosts(1)
    made.busy(CLIENT, 1.9)
    made.takes(CLIENT, 0.1)
    rows = made._rows[CLIENT]
    rows[:] = [(*r[:3], value) if r[0] == SAMPLE and r[2] == name else r for r in rows]
    assert made.others() is None


def test_times_that_cannot_be_say_nothing() -> None:
    made = Hosts(1)
    made.busy(CLIENT, 1.9)
    rows = made._rows[CLIENT]
    for t in (-(2**62), 2**62):
        rows.append((SAMPLE, t, "host.busy_s", 5.0))
    assert made.others() is None


def test_a_recording_without_looks_at_its_host_says_nothing() -> None:
    assert measure(Hosts(1).whole()).others is None


def test_a_summary_says_it_where_it_is_many() -> None:
    for cpus, told in ((0.9, True), (0.1, False)):
        made = Hosts(1)
        made.busy(CLIENT, 1.9)
        made.takes(0, 1.9 - cpus)
        summary = summarize(made.whole())
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


@pytest.mark.parametrize("after", [Others(0.3, 2), Others(0.4, 8), Others(40, 64, False), None])
def test_a_little_more_of_others_or_what_is_not_known_changes_nothing(after: Others | None) -> None:
    quiet = runs(seed=1, others=Others(0.1, 2, full=False))
    found = against(quiet, runs(seed=2, more={DUMP: 0.2}, others=after))

    assert found.differences == ()
    assert found.regressions > 0


def test_a_side_that_waits_more_beside_the_same_others_is_slower() -> None:
    """What it takes less of the processors is idle: nobody else took it."""
    base = runs(seed=1, others=Others(0.4, 2, full=True))
    found = against(base, runs(seed=2, more={DUMP: 0.2}, others=Others(0.4, 2, full=False)))

    assert found.differences == ()
    assert found.regressions > 0


def test_a_moment_in_which_others_were_busy_is_no_condition() -> None:
    """One recording of seven: the tests of times see to it."""
    quiet = runs(seed=1, others=Others(0.0, 2))
    head = [*runs(6, seed=2, others=Others(0.0, 2)), *runs(1, seed=3, others=Others(1.9, 2))]

    assert against(quiet, head).differences == ()
    assert against(quiet[:2], [head[0], head[-1]]).differences == ()


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
    code = "import os\nparent = os.getppid()\nprint(flush=True)\nwhile os.getppid() == parent: pass"
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
    with burning(2 * (os.cpu_count() or 1)), stageprof.profile() as prof:
        dask.compute(*[work(i) for i in range(60)], scheduler="sync")
    seen = others(prof.recording)
    assert seen is not None
    assert seen.full
    assert seen.share > 0.4
