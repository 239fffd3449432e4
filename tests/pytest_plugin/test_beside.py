"""Beside other plugins of pytest, on a cluster, and where nobody uses it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import stageprof
from pytest_plugin.running import WORK, run_tests

#: Packages that a pytest run does not import for having stageprof installed.
HEAVY = ("stageprof", "stageprof_runtime", "dask", "distributed", "pandas", "numpy", "rich")

SHARED = f"""
import pytest
{WORK}
@pytest.mark.stageprof(repeat=2, max_wall=0)
@pytest.mark.parametrize("i", range(4))
def test_over(i):
    go()

@pytest.mark.stageprof
def test_kept():
    go()
"""

WRONG = """
import pytest

@pytest.mark.stageprof(max_wall="3 parsecs")
def test_wrong():
    pass

def test_right():
    pass
"""

ASYNC = f"""
import asyncio
import pytest
import pytest_asyncio
from distributed import Client
{WORK}
@pytest_asyncio.fixture
async def loop():
    return asyncio.get_running_loop()

@pytest.mark.asyncio
@pytest.mark.stageprof(repeat=3, max_stage={{"execution": 0}})
async def test_over(loop):
    assert asyncio.get_running_loop() is loop
    await asyncio.sleep(0)
    go()

@pytest.mark.asyncio
async def test_client(stageprof_recorder):
    options = dict(processes=False, n_workers=1, dashboard_address=None, asynchronous=True)
    async with Client(**options) as client:
        async with stageprof_recorder("sums") as region:
            assert await client.submit(sum, [1, 2]) == 3
    assert len(region.recording.tasks()) == 1

@pytest.mark.asyncio
@pytest.mark.stageprof
async def test_fails():
    raise KeyError("mine")
"""

CLUSTER = """
import time
import pytest
from distributed import Client, LocalCluster

class Slow:
    def __reduce__(self):
        time.sleep(0.4)
        return Slow, ()

def use(x):
    return 1

@pytest.fixture(scope="module")
def client():
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        with Client(cluster) as client:
            yield client

@pytest.mark.stageprof(max_stage={"serialization": "20%"}, no_findings_above="moderate")
def test_slow_to_pickle(client):
    assert client.submit(use, Slow()).result() == 1

@pytest.mark.stageprof(max_stage={"serialization": "20%"})
def test_quick_to_pickle(client):
    assert client.submit(use, 5).result() == 1
    time.sleep(0.05)
"""


def test_a_run_that_does_not_use_it_imports_nothing_of_it(tmp_path: Path) -> None:
    """Only its entry point."""
    (tmp_path / "test_it.py").write_text(
        "import sys\ndef test_it():\n"
        "    assert 'stageprof_pytest' in sys.modules\n"
        f"    assert [name for name in {HEAVY} if name in sys.modules] == []\n"
    )
    (tmp_path / "pytest.ini").touch()

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout


def test_its_entry_point_is_imported_in_no_time(tmp_path: Path) -> None:
    """In microseconds of its own: some hundreds; the package would take most of a million."""
    line = [sys.executable, "-X", "importtime", "-c", "import pytest, stageprof_pytest"]

    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)

    [own] = [text for text in done.stderr.splitlines() if text.endswith(" stageprof_pytest")]
    assert int(own.split("|")[1]) < 20_000


def test_workers_of_xdist_record_judge_and_tell(tmp_path: Path) -> None:
    ended = run_tests(tmp_path, SHARED, "--stageprof", "-n", "2")

    assert ended.outcomes == {f"test_over[{i}]": "FAILED" for i in range(4)} | {
        "test_kept": "PASSED"
    }
    assert len(ended.recordings()) == 2 * 4 + 1
    assert [ended.table.count(f"test_over[{i}]") for i in range(4)] == [1] * 4
    assert all(stageprof.open(path).complete for path in tmp_path.rglob("*.stageprof"))


def test_workers_that_run_the_same_test_record_apart(tmp_path: Path) -> None:
    ended = run_tests(
        tmp_path, SHARED, "--stageprof", "--dist", "each", "--tx", "2*popen", "-k", "test_kept"
    )

    assert ended.status == 0
    assert ended.recordings() == [f"gw{i}/test_it.py-test_kept/1.stageprof" for i in range(2)]


def test_a_marker_that_makes_no_sense_fails_its_test_under_xdist(tmp_path: Path) -> None:
    ended = run_tests(tmp_path, WRONG, "-n", "1")

    assert ended.status == 1
    assert ended.outcomes == {"test_wrong": "ERROR", "test_right": "PASSED"}
    assert "max_wall='3 parsecs'; expected seconds" in ended.out


def test_coroutines_run_in_their_loop(tmp_path: Path) -> None:
    """Each repeat in the one that the fixtures had; exceptions are the test's own."""
    pytest.importorskip("pytest_asyncio")
    options = ("-o", "asyncio_default_fixture_loop_scope=function", "--stageprof")

    ended = run_tests(tmp_path, ASYNC, *options)

    assert ended.outcomes == {
        "test_over": "FAILED",
        "test_client": "PASSED",
        "test_fails": "FAILED",
    }
    assert "judged by the median of 3 recordings" in ended.failure("test_over")
    assert "in execution compute of layer work, made at test_it.py:" in ended.failure("test_over")
    assert "KeyError: 'mine'" in ended.failure("test_fails")
    assert "/stageprof/" not in ended.out.partition("short test summary")[0]
    assert ended.recordings() == [
        "test_it.py-test_client-sums/1.stageprof",
        "test_it.py-test_fails/1.stageprof",
        *(f"test_it.py-test_over/{i}.stageprof" for i in (1, 2, 3)),
    ]


@pytest.mark.cluster
def test_on_a_cluster_a_failure_names_the_slow_stage(tmp_path: Path) -> None:
    line = 1 + next(i for i, text in enumerate(CLUSTER.splitlines()) if "Slow()).result" in text)

    ended = run_tests(tmp_path, CLUSTER)

    assert ended.outcomes == {"test_slow_to_pickle": "FAILED", "test_quick_to_pickle": "PASSED"}
    said, *rest = ended.failure("test_slow_to_pickle").splitlines()
    assert said.startswith("stageprof: serialization took ")
    assert "the limit is 20 %: " in said
    assert said.endswith(f" of layer use, made at test_it.py:{line}")
    assert any(text.startswith("stageprof: critical finding complex-object") for text in rest), rest
