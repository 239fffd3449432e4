"""A comparison: the inert facts that faces show, and how they are found.

`Comparison` is data only; wording is the renderers'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stageprof_collectors.comparison.blame import Blame, Sides, blame
from stageprof_collectors.comparison.conditions import ELSEWHERE, Difference, differences
from stageprof_collectors.comparison.counts import (
    CountChange,
    FindingChange,
    Judged,
    count_changes,
    finding_changes,
)
from stageprof_collectors.comparison.matching import matched, now_at
from stageprof_collectors.comparison.measured import Measured
from stageprof_collectors.comparison.times import TimeChange, enough, time_changes
from stageprof_collectors.comparison.turns import in_turn
from stageprof_collectors.comparison.worth import Walls, plainly
from stageprof_runtime.errors import UsageError


@dataclass(frozen=True)
class Options:
    """How sides are compared."""

    #: whether the recordings of both sides were made in turn, the i-th of each together
    paired: bool = False
    #: the share by which times may differ; None to learn it from the recordings
    floor: float | None = None
    #: judge times although conditions differ, and take several programs of a side for one
    force: bool = False

    def __post_init__(self) -> None:
        """Refuse a floor that is no share."""
        given: object = self.floor
        if given is None or (isinstance(given, (int, float)) and 0 <= given < 1):
            return
        raise UsageError(f"floor={given!r}", expected="a share from 0 to 1", do="floor=0.05")


@dataclass(frozen=True)
class Side:
    """What was compared on one side."""

    #: the files of the recordings, "" for one without
    files: tuple[str, ...]
    #: recordings that do not count, and why
    left_out: tuple[tuple[str, str], ...] = ()
    #: the file of the recording with the middle wall time
    middle: str = ""

    @property
    def number(self) -> int:
        """Recordings that count."""
        return len(self.files)


@dataclass(frozen=True)
class Compared:
    """What became of the baseline in the candidate."""

    baseline: Side
    candidate: Side
    options: Options
    #: what was recorded, as both sides call it
    program: str
    #: what is not the same; times are shown then, but nothing is said of them
    differences: tuple[Difference, ...]
    #: why times are not judged, "" if they are: "one", "few" or "differ"
    unjudged: str
    #: the wall time first, then the eight lines of the account
    times: tuple[TimeChange, ...]
    counts: tuple[CountChange, ...]
    findings: tuple[FindingChange, ...]
    #: what slower stages come from, the greatest change first; of a slower wall time if no stage is
    blames: tuple[Blame, ...] = field(default=())
    #: whether the sides were recorded in turn; None: it is not known
    in_turn: bool | None = None

    @property
    def regressions(self) -> int:
        """How many times, counts and findings are worse."""
        return self._judged().count(Judged.WORSE)

    @property
    def improvements(self) -> int:
        """How many are better."""
        return self._judged().count(Judged.BETTER)

    def _judged(self) -> list[Judged]:
        times, counts, findings = self.times, self.counts, self.findings
        return [
            *(t.judged for t in times),
            *(c.judged for c in counts),
            *(f.judged for f in findings),
        ]

    @property
    def wall(self) -> TimeChange:
        """The wall time."""
        return self.times[0]


def compared(
    base: Sequence[Measured], head: Sequence[Measured], options: Options | None = None
) -> Compared:
    """Compare what was kept of the recordings of both sides.

    Raises:
        UsageError: a side has no complete recording, or those of several programs; or pairs were
            asked for where there are none.
    """
    options = options or Options()
    sides = [_whole(side, name) for side, name in ((base, "baseline"), (head, "candidate"))]
    (base, baseline), (head, candidate) = sides
    if not options.force:
        _check_programs(base, "baseline")
        _check_programs(head, "candidate")
    _check_pairs(baseline, candidate, options)
    moved = now_at(base, head)
    head = matched(base, head)
    different = differences(base, head)
    times = time_changes(base, head, paired=options.paired, floor=options.floor)
    unjudged = _unjudged(len(base), len(head), different, options)
    if unjudged:
        times = tuple(t._replace(judged=Judged.UNKNOWN) for t in times)
    return Compared(
        baseline=baseline,
        candidate=candidate,
        options=options,
        program=next(iter(sorted({each.program for each in head})), ""),
        differences=different,
        unjudged=unjudged,
        times=times,
        counts=_counts(base, head, _walls(base, head, times[0], unjudged), different),
        findings=_findings(base, head, different, options),
        blames=_blames(Sides(base, head, moved), times),
        in_turn=in_turn(base, head),
    )


def _whole(side: Sequence[Measured], name: str) -> tuple[list[Measured], Side]:
    """The recordings of a side that count: others end too early, in a failure, or lack events.

    Where every one lacks some, as those of very large runs may, they all count.
    """
    ended = [each for each in side if not each.useless]
    whole = [each for each in ended if not each.lost] or ended
    if not whole:
        said = f" ({side[0].file or 'it'}: {side[0].useless})" if side else ""
        raise UsageError(
            f"no complete recording of the {name}{said}",
            expected="at least one of a run that did not fail",
            do="record again",
        )
    kept = {id(each) for each in whole}
    out = (each for each in side if id(each) not in kept)
    left_out = tuple((each.file, each.useless or each.lost) for each in out)
    middle = sorted(whole, key=lambda each: each.wall_s)[(len(whole) - 1) // 2]
    return whole, Side(tuple(each.file for each in whole), left_out, middle.file)


def _check_programs(side: Sequence[Measured], name: str) -> None:
    """Several together would be one that nobody wrote."""
    programs = sorted({each.program for each in side})
    if len(programs) > 1:
        said = ", ".join(each or "an unnamed program" for each in programs[:3])
        raise UsageError(
            f"recordings of {len(programs)} programs for the {name}: {said}",
            expected="those of one program",
            do="compare them one by one; --force takes them for one",
        )


def _check_pairs(base: Side, head: Side, options: Options) -> None:
    if not options.paired:
        return
    if base.left_out or head.left_out or base.number != head.number:
        raise UsageError(
            f"pairs of {base.number} and {head.number} complete recordings",
            expected="as many on each side, in the order in which they were made",
            do="leave out --paired",
        )


def _unjudged(base: int, head: int, different: Sequence[Difference], options: Options) -> str:
    if different and not options.force:
        return "differ"
    if min(base, head) == 1:
        return "one"
    return "" if enough(base, head, paired=options.paired) else "few"


def _walls(
    base: Sequence[Measured], head: Sequence[Measured], wall: TimeChange, unjudged: str
) -> Walls:
    """What the wall times say; nothing where they are of different conditions."""
    few = unjudged in ("one", "few")
    plain = few and plainly([each.wall_s for each in base], [each.wall_s for each in head])
    return Walls(wall.before_s, better=wall.judged == Judged.BETTER, plainly=plain)


def _counts(
    base: Sequence[Measured],
    head: Sequence[Measured],
    walls: Walls,
    different: Sequence[Difference],
) -> tuple[CountChange, ...]:
    """Every count; what one side has not recorded whole is not judged, whoever asks for it."""
    changes = count_changes(base, head, walls)
    if any(each.kind == "events" for each in different):
        changes = tuple(c._replace(judged=Judged.UNKNOWN) for c in changes)
    return changes


def _findings(
    base: Sequence[Measured],
    head: Sequence[Measured],
    different: Sequence[Difference],
    options: Options,
) -> tuple[FindingChange, ...]:
    """Those that came or went; of other machines they are not judged unless somebody insists.

    Of what one side has not recorded whole they are not, whoever asks for it.
    """
    changes, kinds = finding_changes(base, head), {each.kind for each in different}
    if "events" in kinds or (not options.force and kinds & ELSEWHERE):
        changes = tuple(f._replace(judged=Judged.UNKNOWN) for f in changes)
    return changes


def _blames(sides: Sides, times: Sequence[TimeChange]) -> tuple[Blame, ...]:
    """Of every stage that is slower; if only the whole is, of the line that explains most of it."""
    wall, *stages = times
    slower = [t for t in stages if t.judged == Judged.WORSE]
    if not slower and wall.judged == Judged.WORSE:
        slower = [max(stages, key=lambda t: t.change_s)]
    return tuple(blame(sides, t) for t in sorted(slower, key=lambda t: -t.change_s))
