"""Dask's own expectations: the tests of the installed Dask, with a recording on and with it off.

::

    python tests/nightly/dasks_own.py                    all suites
    python tests/nightly/dasks_own.py array dataframe    some of them
    python tests/nightly/dasks_own.py --round session    one recording round all tests

Prints how many tests passed, failed and so on in each, and every test that ended in another way.
The exit status is 1 if one did. Releases of distributed bring no tests: where a checkout of its tag
is named by `--distributed DIR` (or `STAGEPROF_DISTRIBUTED`), its client tests run as well.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click
import dask

HERE: Final = Path(__file__).parent
DASK: Final = Path(dask.__file__).parent
#: Where a checkout of distributed is, if there is one.
CHECKOUT: Final = "STAGEPROF_DISTRIBUTED"

#: Suite -> its files, below the package; pieces of a few minutes.
SUITES: Final = {
    "dask-a-d": ("tests/test_[a-d]*.py",),
    "dask-e-o": ("tests/test_[e-o]*.py",),
    "dask-p-z": ("tests/test_[p-z]*.py",),
    "array": ("array/tests/test_array_core.py",),
    "bag": ("bag/tests/test_bag.py",),
    "dataframe": ("dataframe/dask_expr/tests/test_collection.py",),
    "dataframe-distributed": ("dataframe/dask_expr/tests/test_distributed.py",),
}
CLIENT: Final = ("distributed/tests/test_client.py", "distributed/tests/test_as_completed.py")

#: Neither ours nor theirs: what both sides are run under.
_INI: Final = "[pytest]\nxfail_strict = true\ntimeout = 300\n"


@dataclass
class Outcomes:
    """How the tests of a suite ended."""

    ended: dict[str, str]
    why: dict[str, str] = field(default_factory=dict)
    recordings: int = 0
    events: int = 0
    #: hooks of ours that were switched off meanwhile
    disabled: list[str] = field(default_factory=list)

    @property
    def counts(self) -> str:
        """Outcomes and how many there are of each."""
        return ", ".join(f"{n:,} {how}" for how, n in sorted(Counter(self.ended.values()).items()))


def run(files: Sequence[Path], each: str) -> Outcomes:
    """Run tests in a process of their own.

    Args:
        files: theirs.
        each: what is one recording, "test" or "session"; "" for none.
    """
    with tempfile.TemporaryDirectory() as folder:
        ini, said = Path(folder, "pytest.ini"), Path(folder, "outcomes.json")
        ini.write_text(_INI)
        paths = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))
        environment = os.environ | {
            "PYTHONHASHSEED": "0",  # some of Dask's tests end by the order of a set of texts
            "PYTHONPATH": paths, "STAGEPROF_RECORD_ROUND": each, "STAGEPROF_OUTCOMES": str(said),
        }  # fmt: skip
        line = [sys.executable, "-m", "pytest", "-q", "-p", "recording", "-p", "no:cacheprovider"]
        line += ["-c", str(ini), "--rootdir", str(files[0].parents[2]), *map(str, files)]
        done = subprocess.run(
            line, env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
        if not said.exists():
            raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout[-3000:]}")
        return Outcomes(**json.loads(said.read_text()))


def differences(off: Outcomes, on: Outcomes) -> list[str]:
    """Tests that ended otherwise with a recording on."""
    found = []
    for test in sorted({*off.ended, *on.ended}):
        was, now = off.ended.get(test, "missing"), on.ended.get(test, "missing")
        if was != now:
            found.append(f"{test}: {was} without, {now} with a recording")
    return found


def compare(name: str, files: Sequence[Path], each: str) -> list[str]:
    """Run a suite twice, print both counts, and return what differs."""
    off, on = run(files, ""), run(files, each)
    click.echo(f"{name}: off  {off.counts}")
    click.echo(f"{name}: on   {on.counts}; {on.recordings:,} recordings, {on.events:,} events")
    found = differences(off, on)
    for line in found:
        test = line.partition(": ")[0]
        click.echo(f"{name}: DIFFERS  {line}\n{on.why.get(test, '')}")
    for hook in on.disabled:
        click.echo(f"{name}: hook disabled  {hook}")
    return found


def files_of(name: str, checkout: str = "") -> list[Path]:
    """The files of a suite; none if they are not installed.

    Args:
        name: the suite.
        checkout: a checkout of distributed, for the suite "client".
    """
    if name == "client":
        return [path for path in (Path(checkout, each) for each in CLIENT) if path.exists()]
    return sorted(path for pattern in SUITES[name] for path in DASK.glob(pattern))


def main() -> int:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("suites", nargs="*", help=f"default all: {' '.join(SUITES)} client")
    parser.add_argument("--round", default="test", choices=["test", "session"])
    parser.add_argument("--distributed", default=os.environ.get(CHECKOUT, ""), metavar="DIR")
    args = parser.parse_args()
    found: list[str] = []
    for name in args.suites or [*SUITES, "client"]:
        files = files_of(name, args.distributed)
        if files:
            found += compare(name, files, args.round)
        else:
            click.echo(f"{name}: NOT RUN, its tests are not installed; see --distributed")
    click.echo(f"{len(found):,} tests end otherwise while a recording is on")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
