"""The programs in samples/: they run everywhere they can, and the result is always the same."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from distributed import Client

import stageprof
import truth

SAMPLES = Path(__file__).parents[1] / "samples"

#: What each program imports beyond what stageprof itself needs.
NEEDS = {
    "etl": ["pyarrow"],
    "rechunk": [],
    "climatology": ["xarray"],
    "wordcount": [],
    "futures_pipeline": [],
    "boosting": ["xgboost", "sklearn"],
}
#: What they share.
SHARED = ("program", "make_data")
ONLY_DISTRIBUTED = ["futures_pipeline", "boosting"]
EVERYWHERE = [name for name in NEEDS if name not in ONLY_DISTRIBUTED]

#: What is said of what is not wrong: by workers when XGBoost connects them, at any verbosity; by a
#: nanny whose worker is slow to end, on a busy machine.
SAID = re.compile(
    r"\[[\d:]+\] Task \[xgboost\.dask-\d+\]:\S+ got rank \d+\n?"
    r"|.* distributed\.nanny - WARNING - Worker process still alive after .*, killing\n?"
)

#: gilknocker's thread can outlive a plain Dask program's interpreter, which then aborts; that is
#: not what is tested here.
QUIET = os.environ | {"DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "False"}

#: Runs the program that it is given while a client is active, and fails if it was left unused.
BESIDE_A_CLIENT = """
import os, runpy, sys
from distributed import Client
if __name__ == "__main__":
    del sys.argv[0]
    sys.path[0] = os.path.dirname(sys.argv[0])
    with Client(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as end:
            assert end.code == 0, end.code
        assert client.cluster.scheduler.transition_counter > 0, "the client was left unused"
"""


class Ended(NamedTuple):
    """How a program ended."""

    status: int
    lines: list[str]
    errors: str

    @property
    def digest(self) -> str:
        """The digest of the result."""
        return str(json.loads(self.lines[-1])["result"])


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("samples"))


def run_program(name: str, *args: str, prefix: Sequence[str] = ()) -> Ended:
    """Runs a program of samples/ in a process of its own.

    Args:
        name: The program, without `.py`.
        args: Its arguments.
        prefix: What stands between the interpreter and the program: `("-m", "stageprof", "run")`.
    """
    for package in NEEDS[name]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"samples/{name}.py needs {package}, which is not installed")
    command = [sys.executable, *prefix, str(SAMPLES / f"{name}.py"), *args]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=QUIET)
    errors = SAID.sub("", ended.stderr).lstrip("\n")
    return Ended(ended.returncode, ended.stdout.splitlines(), errors)


def digest_of(name: str, *args: str, prefix: Sequence[str] = ()) -> str:
    """The digest that a run ends with; it must end well and without a warning."""
    ended = run_program(name, *args, prefix=prefix)
    assert (ended.status, ended.errors) == (0, "")
    assert json.loads(ended.lines[-1])["program"] == name
    return ended.digest


def digest_recorded(name: str, path: Path, *args: str) -> str:
    """The digest of a run under `stageprof run`; its account must add up and explain 97 %."""
    prefix = ("-m", "stageprof", "run", "--no-summary", "-o", str(path))
    ended = run_program(name, *args, prefix=prefix)
    assert ended.status == 0, ended.errors
    is_whole(stageprof.open(path))
    return ended.digest


def is_whole(recording: stageprof.Recording) -> None:
    """Its account adds up and explains 97 %, and nothing is missing."""
    truth.adds_up(recording)
    coverage = recording.coverage()
    assert coverage["complete"]
    assert (coverage["dropped"], coverage["disabled"]) == ({}, [])
    assert coverage["instrumented"] == coverage["workers"]
    assert len(recording.tasks()) > 0


@pytest.fixture(scope="module", autouse=True)
def importable() -> Iterator[None]:
    """The programs are modules here, and on the workers of a cluster that is started later."""
    before = dict(os.environ)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SAMPLES))
        yield
    # scikit-learn sets some: clusters of other tests would not be forked from the template.
    for name in set(os.environ) - set(before):
        del os.environ[name]
    for name in (*NEEDS, *SHARED):
        sys.modules.pop(name, None)


@pytest.mark.cluster
@pytest.mark.parametrize("name", NEEDS)
def test_small_program_on_a_cluster_gives_recorded_what_it_gives_without(
    name: str, data: str, client: Client
) -> None:
    """And on threads, where it can; the recording explains 97 % of the time."""
    for package in NEEDS[name]:
        pytest.importorskip(package)
    program, shared, inputs = map(importlib.import_module, (name, *SHARED))

    def result(scheduler: str) -> str:
        settings = shared.parsed(["--data", data, "--scheduler", scheduler], "")
        if name == "etl":
            inputs.make(settings)
        with shared.started(settings):
            return str(shared.digest(program.run(settings)))

    plain = result("threads" if name in EVERYWHERE else "distributed")
    with stageprof.profile() as prof:
        assert result("distributed") == plain
    is_whole(prof.recording)


@pytest.mark.cluster
@pytest.mark.parametrize("name", NEEDS)
def test_result_is_the_same_with_stageprof_and_without(
    name: str, data: str, tmp_path: Path
) -> None:
    """On distributed and, where it can, on threads; the recording explains 97 % of the time."""
    plain = digest_of(name, "--data", data)

    assert digest_recorded(name, tmp_path / "a.stageprof", "--data", data) == plain
    if name in EVERYWHERE:
        threads = ("--data", data, "--scheduler", "threads")
        assert digest_recorded(name, tmp_path / "b.stageprof", *threads) == plain


@pytest.mark.nightly
@pytest.mark.cluster
@pytest.mark.parametrize("name", NEEDS)
def test_full_size_under_stageprof(name: str, data: str, tmp_path: Path) -> None:
    """The same at full size."""
    size = ("--data", data, "--size", "full")
    plain = digest_of(name, *size)

    assert digest_recorded(name, tmp_path / "a.stageprof", *size) == plain


@pytest.mark.nightly
@pytest.mark.cluster
@pytest.mark.parametrize("name", EVERYWHERE)
def test_result_is_the_same_on_every_local_scheduler(name: str, data: str) -> None:
    threads, processes, sync = (
        digest_of(name, "--data", data, "--scheduler", scheduler)
        for scheduler in ("threads", "processes", "sync")
    )

    assert threads == processes == sync


@pytest.mark.nightly
@pytest.mark.cluster
@pytest.mark.parametrize("name", NEEDS)
def test_result_at_full_size_does_not_depend_on_the_number_of_workers(name: str, data: str) -> None:
    two = digest_of(name, "--data", data, "--size", "full")
    three = digest_of(name, "--data", data, "--size", "full", "--workers", "3")

    assert two == three


@pytest.mark.cluster
@pytest.mark.parametrize("name", ["rechunk", "futures_pipeline"])
def test_active_client_is_used(name: str, data: str) -> None:
    beside = digest_of(name, "--data", data, prefix=("-c", BESIDE_A_CLIENT))

    assert beside == digest_of(name, "--data", data)


@pytest.mark.parametrize("scheduler", ["threads", "processes", "sync"])
@pytest.mark.parametrize("name", ONLY_DISTRIBUTED)
def test_program_that_needs_a_client_says_so_in_one_line(name: str, scheduler: str) -> None:
    ended = run_program(name, "--scheduler", scheduler)

    assert (ended.status, ended.lines) == (2, [])
    assert ended.errors.count("\n") == 1
    assert ended.errors.startswith(f"{name}.py: --scheduler {scheduler}: ")
    assert ended.errors.endswith("; use --scheduler distributed\n")


@pytest.mark.parametrize(
    ("option", "value"), [("--size", "huge"), ("--workers", "0"), ("--data", __file__)]
)
def test_bad_argument_ends_with_one_line_and_status_2(option: str, value: str) -> None:
    ended = run_program("rechunk", option, value)

    assert (ended.status, ended.lines) == (2, [])
    assert ended.errors.count("\n") == 1
    assert option in ended.errors
    assert value in ended.errors
