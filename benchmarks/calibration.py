"""How right the predicted savings are: every pair of samples, predicted against measured.

Run ``python benchmarks/calibration.py [--rounds 3] [--rules ID ...] [--write docs/calibration.md]``
or ``make calibration``. With ``--keep FOLDER`` the recordings stay, one folder a round, and with
``--again FOLDER`` they are predicted from anew, and nothing is run. In each round every pair runs
once, bad and fixed in random order, each in a process of its own under `stageprof run`. Predicted
is the middle of the interval of the finding on the bad program, measured is the difference of the
median times of bad and fixed, without what the account calls `outside` (starting a cluster varies
by more than some fixes save) but where that is what the rule is about.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

sys.path.insert(0, os.fspath(Path(__file__).parents[1]))
sys.path.insert(0, os.fspath(Path(__file__).parents[1] / "tests"))

import stageprof
from benchmarks import margins
from benchmarks.page import machine
from findings.pairs import BLIND, NOTES, PAIRS, Ran, ran, sample
from stageprof_collectors.findings.catalogue import known
from stageprof_collectors.findings.settings import DEFAULTS
from stageprof_runtime.errors import StageprofError

#: The rules whose savings are seconds, and seen by this Python.
TIMED = sorted({*PAIRS} - NOTES - BLIND)
#: What is aimed at: median error, and rank correlation of predicted and measured.
ERROR, CORRELATION = 0.20, 0.8


@dataclass
class Pair:
    """The figures of one rule, a value a round."""

    rule: str
    bad: list[float] = field(default_factory=list)
    fixed: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    #: the interval as the rule gives it, without the margin of a diagnosis
    own_low: list[float] = field(default_factory=list)
    own_high: list[float] = field(default_factory=list)
    first: list[str] = field(default_factory=list)

    def take(self, kind: str, run: Ran) -> None:
        """Note one run."""
        (self.bad if kind == "bad" else self.fixed).append(run.seconds(self.rule))
        if kind == "bad":
            findings = run.recording.findings()
            self.first.append(findings[0].rule)
            saving = next((f.saving_s for f in findings if f.rule == self.rule), (0.0, 0.0))
            self.low.append(saving[0])
            self.high.append(saving[1])
            rule = known().rules[self.rule]
            alone = [f.saving_s for f in rule.find(run.recording, DEFAULTS.of(rule))]
            own = max(alone, key=sum, default=(0.0, 0.0))
            self.own_low.append(own[0])
            self.own_high.append(own[1])

    def row(self) -> dict[str, object]:
        """Medians over the rounds."""
        measured = statistics.median(self.bad) - statistics.median(self.fixed)
        low, high = statistics.median(self.low), statistics.median(self.high)
        predicted = (low + high) / 2
        return {
            "rule": self.rule,
            "bad_s": statistics.median(self.bad),
            "fixed_s": statistics.median(self.fixed),
            "measured_s": measured,
            "predicted_s": predicted,
            "low_s": low,
            "high_s": high,
            "own_low_s": statistics.median(self.own_low),
            "own_high_s": statistics.median(self.own_high),
            "ground": known().rules[self.rule].ground,
            "error": abs(predicted - measured) / abs(measured) if measured else float("inf"),
            "covered": low <= measured <= high,
            "first": sum(rule == self.rule for rule in self.first) / len(self.first),
        }


def kept(script: Path, folder: Path) -> Ran:
    """What an earlier calibration recorded of a program."""
    return Ran(stageprof.open(folder / f"{script.stem}.stageprof"), "")


def measured(rules: list[str], rounds: int, keep: Path, *, again: bool = False) -> pd.DataFrame:
    """One row per rule; the recordings stay in `keep`, a folder for each round, or are there."""
    pairs: dict[str, Pair] = {rule: Pair(rule) for rule in rules}
    failed: defaultdict[str, list[str]] = defaultdict(list)
    for i in range(rounds):
        runs = [(rule, kind) for rule in rules for kind in ("bad", "fixed")]
        random.shuffle(runs)
        for rule, kind in runs:
            folder = keep / str(i + 1)
            folder.mkdir(parents=True, exist_ok=True)
            try:
                script = sample(rule, kind)
                run = kept(script, folder) if again else ran(script, folder)
                pairs[rule].take(kind, run)
            except (AssertionError, StageprofError, subprocess.TimeoutExpired) as error:
                failed[rule].append(str(error)[-200:])
        print(f"round {i + 1}/{rounds}", file=sys.stderr, flush=True)
    for rule, why in failed.items():
        print(f"{rule} failed: {why[0]}", file=sys.stderr)
    whole = [pair for pair in pairs.values() if pair.bad and pair.fixed]
    return pd.DataFrame([pair.row() for pair in whole]).set_index("rule")


def report(frame: pd.DataFrame, rounds: int) -> Iterator[str]:
    """The page, as lines of markdown."""
    error = frame["error"].median()
    order = frame["predicted_s"].corr(frame["measured_s"], method="spearman")
    yield "# Calibration: predicted savings against measured ones"
    yield ""
    yield f"`make calibration`, {rounds} rounds. {machine()}"
    yield ""
    yield f"- pairs: {len(frame)}; left out: {', '.join(sorted(NOTES | BLIND))}"
    yield f"- median error: {error:.0%} (aim: under {ERROR:.0%})"
    yield f"- rank correlation: {order:.2f} (aim: at least {CORRELATION})"
    yield f"- measured difference within the predicted interval: {frame['covered'].mean():.0%}"
    yield f"- the rule ranks first on its bad program: {frame['first'].mean():.0%} of runs"
    yield ""
    yield "| rule | bad, s | fixed, s | measured, s | predicted, s | interval, s | error |"
    yield "|---|---|---|---|---|---|---|"
    for rule, row in frame.sort_values("error").iterrows():
        yield (
            f"| {rule} | {row.bad_s:.2f} | {row.fixed_s:.2f} | {row.measured_s:.2f} | "
            f"{row.predicted_s:.2f} | {row.low_s:.2f} to {row.high_s:.2f} | {row.error:.0%} |"
        )
    yield ""
    yield from margins.report(frame)


def main() -> None:
    """Measure, print, and write if asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--rules", nargs="+", default=TIMED, choices=PAIRS)
    options.add_argument("--write", type=Path)
    options.add_argument("--keep", type=Path, help="where the recordings stay")
    options.add_argument("--again", type=Path, help="where they stayed: nothing is run")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rounds = len([*given.again.glob("[0-9]*")]) if given.again else given.rounds
        where = given.again or given.keep or Path(folder)
        frame = measured(given.rules, rounds, where, again=given.again is not None)
    text = "\n".join(report(frame, rounds)) + "\n"
    print(text)
    if given.write is not None:
        given.write.write_text(text)


if __name__ == "__main__":
    main()
