"""Parts of a test that report by themselves: what is recorded is the test."""

from __future__ import annotations

import pytest

import stageprof
from pytest_plugin.running import WORK

SOURCE = f"""
import pytest, unittest
{WORK}
@pytest.mark.stageprof(repeat=3, max_wall="60s")
def test_good(subtests):
    for i in range(2):
        with subtests.test(i=i):
            go()

@pytest.mark.stageprof(repeat=3, max_wall=0)
def test_bad(subtests):
    for i in range(2):
        with subtests.test(i=i):
            go()
            assert i == 0

class Case(unittest.TestCase):
    @pytest.mark.stageprof(repeat=3, max_wall="60s")
    def test_case(self):
        for i in range(2):
            with self.subTest(i=i):
                go()
"""


@pytest.fixture
def said(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> str:
    if pytest.version_tuple < (9,):
        pytest.skip("this pytest has no subtests")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:asyncio")
    pytester.makepyfile(test_it=SOURCE)
    return pytester.runpytest_subprocess("--stageprof").stdout.str()


def test_each_test_has_one_row_whatever_its_subtests(said: str) -> None:
    table = said.rpartition("= stageprof =")[2].partition("short test summary")[0]
    rows = [line.split()[-1].rpartition("::")[2] for line in table.splitlines() if "::" in line]
    assert sorted(rows) == ["test_bad", "test_case", "test_good"]


def test_a_test_with_a_failed_subtest_is_called_once_and_not_judged(said: str) -> None:
    assert "contains 1 failed subtest" in said
    assert "the limit is" not in said
    assert said.count("assert 1 == 0") <= 3


def test_its_recording_says_that_it_failed(said: str, pytester: pytest.Pytester) -> None:
    """Only that: no exception left the function."""
    assert said
    files = pytester.path.rglob("*.stageprof")
    ended = {file.parent.name: stageprof.open(file).failures.ended for file in files}
    assert [name.rpartition("-")[0] for name, end in ended.items() if end] == [
        "test_it.py-test_bad"
    ]
