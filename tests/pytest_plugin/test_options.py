"""The option, the marker's arguments, and what they mean."""

from __future__ import annotations

from typing import Any

import pytest

import stageprof
from pytest_plugin.running import WORK
from stageprof.testing.limits import Limits, Most, limits
from stageprof_collectors.findings.finding import Severity
from stageprof_runtime.errors import UsageError
from stageprof_runtime.stage import Stage

MARKED = f"""
import pytest
{WORK}
@pytest.mark.stageprof(max_wall=0)
def test_marked():
    go()

def test_other():
    go()
"""
UNMARKED = MARKED.replace("@pytest.mark.stageprof(max_wall=0)", "")


def outcomes(result: pytest.RunResult) -> dict[str, int]:
    return dict(result.parseoutcomes())


@pytest.fixture(autouse=True)
def without_asyncio(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """It warns where it is not configured."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:asyncio")


def recordings(pytester: pytest.Pytester) -> list[str]:
    """The tests that were recorded."""
    found = (stageprof.open(path) for path in pytester.path.rglob("*.stageprof"))
    return sorted(each.store.header["label"].partition("::")[2] for each in found)


def test_a_marker_alone_judges_and_keeps_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(MARKED)

    result = pytester.runpytest_inprocess()

    assert outcomes(result) == {"failed": 1, "passed": 1}
    result.stdout.fnmatch_lines(["*pytest --stageprof keeps the recordings*"])
    assert recordings(pytester) == []


def test_no_stageprof_neither_records_nor_judges(pytester: pytest.Pytester) -> None:
    """The fixture still works, for the test may look at what it recorded."""
    pytester.makepyfile(
        MARKED + "\n\ndef test_block(stageprof_recorder):\n"
        "    with stageprof_recorder():\n        go()\n"
        "    assert stageprof_recorder.recording.wall > 0\n"
    )

    result = pytester.runpytest_inprocess("--stageprof", "--no-stageprof")

    assert outcomes(result) == {"passed": 3}
    assert recordings(pytester) == []


@pytest.mark.smoke
def test_the_option_records_what_is_marked(pytester: pytest.Pytester) -> None:
    """A bare option takes no file that comes after it for its folder."""
    file = pytester.makepyfile(MARKED)

    result = pytester.runpytest_inprocess("--stageprof", str(file))

    assert outcomes(result) == {"failed": 1, "passed": 1}
    assert recordings(pytester) == ["test_marked"]
    assert (pytester.path / "stageprof-recordings").is_dir()


def test_without_a_marker_the_option_records_every_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(UNMARKED)

    result = pytester.runpytest_inprocess("--stageprof=here/there")

    assert outcomes(result) == {"passed": 2}
    assert recordings(pytester) == ["test_marked", "test_other"]
    assert (pytester.path / "here" / "there").is_dir()


def test_a_second_run_replaces_the_recordings_of_its_tests(pytester: pytest.Pytester) -> None:
    """Those of other tests, and other files, stay."""
    more = UNMARKED.replace("def test_marked", "@pytest.mark.stageprof(repeat=2)\ndef test_marked")
    pytester.makepyfile(more)
    pytester.runpytest_inprocess("--stageprof")
    [folder] = {path.parent for path in pytester.path.rglob("*.stageprof")}
    (folder / "mine.stageprof").touch()
    pytester.makepyfile(UNMARKED)

    pytester.runpytest_inprocess("--stageprof", "-k", "test_marked")

    assert sorted(path.name for path in folder.iterdir()) == ["1.stageprof", "mine.stageprof"]


def test_collecting_and_stopping_are_pytests_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(MARKED)

    assert pytester.runpytest_inprocess("--stageprof", "--co", "-q").ret == 0
    assert recordings(pytester) == []
    assert outcomes(pytester.runpytest_inprocess("-x")) == {"failed": 1}


def test_switched_off_as_a_plugin_it_is_not_there(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(UNMARKED)

    assert pytester.runpytest_inprocess("-p", "no:stageprof").ret == 0
    assert pytester.runpytest_inprocess("-p", "no:stageprof", "--stageprof").ret == 4


def test_a_folder_that_is_a_file_is_one_line(pytester: pytest.Pytester) -> None:
    """B2: `pytest --stageprof=FILE`."""
    file = pytester.makepyfile(MARKED)

    result = pytester.runpytest_inprocess(f"--stageprof={file.name}")

    assert result.ret == 4
    assert [line for line in result.errlines if line.strip()] == [
        f"ERROR: --stageprof={file.name!r}; expected a folder, or a new name for one"
    ]


def test_recording_that_fails_does_not_fail_the_test(pytester: pytest.Pytester) -> None:
    """The folder goes away meanwhile; what cannot be judged is said."""
    source = MARKED.replace("(max_wall=0)", "(repeat=2)")
    gone = (
        "    import os; os.path.isdir('kept') and os.rename('kept', 'gone')\n    open('kept', 'a')"
    )
    pytester.makepyfile(source.replace("    go()", f"{gone}.close()\n    go()", 1))

    result = pytester.runpytest_inprocess("--stageprof=kept", "-k", "test_marked")

    assert outcomes(result) == {"passed": 1, "deselected": 1}
    result.stdout.fnmatch_lines(["*not recorded: *"])


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("max_wall='3 parsecs'", "max_wall='3 parsecs'; expected seconds, or a text like '3s'*"),
        ("max_wal=3", "max_wal=3; expected one of repeat, max_wall, max_stage, *"),
        ("repeat=0", "repeat=0; expected a whole number from 1 to 10,000*"),
        ("5", "5 without a name; expected max_wall='3s'*"),
        ("max_stage={'sorting': '1%'}", "no stage 'sorting' in max_stage; expected one of *"),
        ("max_stage='10%'", "max_stage='10%'; expected a dict like*"),
        ("max_stage={'execution': '101%'}", "max_stage*=*101%*; expected a share like '10%'*"),
        ("no_findings_above='critical'", "no_findings_above='critical'; expected one of serious*"),
        ("max_wall='\\x1b[31m'", "max_wall=*x1b*"),
    ],
)
def test_a_marker_that_makes_no_sense_is_one_line_with_the_test(
    pytester: pytest.Pytester, marker: str, said: str
) -> None:
    pytester.makepyfile(MARKED.replace("max_wall=0", marker))

    result = pytester.runpytest_inprocess()

    assert result.ret == 4
    [line] = [line for line in result.errlines if line.strip()]
    pytest.LineMatcher([line]).fnmatch_lines([f"ERROR: *.py::test_marked: {said}"])


def test_limits_are_seconds_shares_and_severities() -> None:
    given = {
        "repeat": 5,
        "max_wall": "1.5 min",
        "max_stage": {"serialization": "10%", "execution": "500ms", "outside": 2},
        "no_findings_above": "moderate",
    }

    assert limits(given) == Limits(
        repeat=5,
        max_wall_s=90.0,
        max_stage=(
            (Stage.SERIALIZATION, Most(0.1, is_share=True)),
            (Stage.EXECUTION, Most(0.5, is_share=False)),
            (Stage.OUTSIDE, Most(2.0, is_share=False)),
        ),
        no_findings_above=Severity.MODERATE,
    )


def test_the_marker_closest_to_a_test_goes_first(pytester: pytest.Pytester) -> None:
    source = MARKED.replace("(max_wall=0)", "(max_wall='1h')")
    pytester.makepyfile(source + "\n\npytestmark = pytest.mark.stageprof(max_wall=0)\n")

    result = pytester.runpytest_inprocess("-rA")

    result.stdout.fnmatch_lines(["PASSED *::test_marked", "FAILED *::test_other*"])


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True, "", "1e3s", "٣s", [3]])
def test_what_is_no_time_is_refused(value: Any) -> None:
    with pytest.raises(UsageError):
        limits({"max_wall": value})


def test_a_folder_of_tests_after_the_bare_option_has_its_own_options(
    pytester: pytest.Pytester,
) -> None:
    """They are in its conftest, which pytest looks for before it knows all words."""
    folder = pytester.mkdir("checks")
    (folder / "conftest.py").write_text("def pytest_addoption(parser): parser.addoption('--size')")
    (folder / "test_it.py").write_text(
        "def test_size(request): assert request.config.getoption('--size') == 'big'"
    )

    result = pytester.runpytest_subprocess("--stageprof", "checks", "--size", "big")

    assert outcomes(result) == {"passed": 1}
