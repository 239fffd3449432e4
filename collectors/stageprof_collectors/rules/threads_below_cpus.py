"""Workers with fewer threads than they may use CPUs, while tasks wait for a thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from stageprof_collectors.findings.finding import Finding, Fix, severity
from stageprof_collectors.findings.innocence import without_gil
from stageprof_collectors.findings.library_threads import library_s
from stageprof_collectors.findings.phrase import of_wall
from stageprof_collectors.findings.quantity import count, share
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.profiles.looks import Looks
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.tables.crew import Crew
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT: Final = (
    "Give the workers of a host as many threads as it has CPUs. Whoever starts them has an option "
    "for it: LocalCluster(n_workers=, threads_per_worker=), `dask worker --nworkers --nthreads`, "
    "dask-jobqueue cores= and processes=, dask-kubernetes and dask-cloudprovider worker options. "
    "Set them anew when you change the size of the machines."
)
_GIL: Final = (
    " About {part} of the tasks' time is in Python's own bytecode, which one thread of a process "
    "at a time can run: so take more worker processes with one thread each."
)
_CODE: Final = """\
from distributed import Client, LocalCluster

cluster = LocalCluster(n_workers={workers}, threads_per_worker={threads})
client = Client(cluster)"""


class Room(NamedTuple):
    """The host with most CPUs to spare: its CPUs, threads and workers."""

    cpus: int
    threads: int
    workers: int


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for all hosts."""
    crew = Crew(recording)
    room = _room(crew)
    if room is None or room.threads >= limits["threads"] * room.cpus or len(crew.rows) < 2:
        return
    if _used(recording, crew, room) >= limits["library"]:
        return
    found = _finding(recording, crew, room, limits)
    if found.saving_s[1] >= limits["share"] * recording.wall:
        yield found


def _room(crew: Crew) -> Room | None:
    rooms = []
    for host in {member.host for member in crew.fullest}:
        mine = crew.on_host(host)
        cpus, threads = max(m.cpus for m in mine), sum(m.threads for m in mine)
        if threads < cpus:
            rooms.append(Room(cpus, threads, len(mine)))
    return max(rooms, key=lambda room: room.cpus - room.threads, default=None)


def _used(recording: Recording, crew: Crew, room: Room) -> float:
    """Of the CPUs without a thread of a worker the part that the tasks' libraries use."""
    runs = recording.timeline.runs
    worked = float((runs["stop"] - runs["start"])[crew.rows].sum()) / 1e9
    spare = worked * (room.cpus / room.threads - 1)
    return library_s(recording, crew.rows) / spare if spare > 0 else 0.0


def _finding(recording: Recording, crew: Crew, room: Room, limits: Limits) -> Finding:
    bound = _bytecode(recording)
    in_line = bound > limits["bytecode"] and not without_gil(recording)
    times = room.cpus / room.threads
    workers, threads = room.workers, max(1, room.cpus // room.workers)
    if in_line:
        workers, threads = room.cpus, 1
        saved = recording.replay.saving(Change(workers=round(len(crew.fullest) * times)))
    else:
        saved = recording.replay.saving(Change(threads=threads))
    cost = cost_of(recording, steps=frozenset({STEP["wait.thread"], STEP["compute"]}))
    mixed = len({m.threads for m in crew.fullest}) > 1
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{count(room.workers, 'worker')} with {count(room.threads, 'thread')} on a host of "
            f"{count(room.cpus, 'CPU')}{', not all alike' if mixed else ''}: "
            f"{of_wall(cost, recording)} in tasks"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "cpus": room.cpus,
            "threads": room.threads,
            "workers": room.workers,
            "bytecode_share": bound,
            "threads_differ": int(mixed),
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(
            _TEXT + (_GIL.format(part=share(bound)) if in_line else ""),
            _CODE.format(workers=workers, threads=threads),
        ),
        cause="threads below cpus",
    )


def _bytecode(recording: Recording) -> float:
    """The part of the tasks' time in Python's bytecode, as far as it was looked at."""
    looks = Looks(recording)
    whole = sum(look.seconds for look in looks.all)
    return min(1.0, sum(look.seconds for look in looks.python()) / whole) if whole > 0 else 0.0


RULE = Rule(
    id="threads-below-cpus",
    stage=Stage.EXECUTION,
    summary="Workers have fewer threads than their host has CPUs for them.",
    find=find,
    ground=Ground.SPREAD,
    limits={
        "threads": Limit(1.0, "for each CPU that the workers may use; fewer leave CPUs idle"),
        "library": Limit(
            0.5, "of the other CPUs: where tasks' own libraries use as many, none is idle"
        ),
        "bytecode": Limit(0.3, "of the tasks' time: with more, threads of a process get in line"),
        "share": Limit(0.02, "of the wall time that it saves at most: less is not worth a change"),
    },
)
