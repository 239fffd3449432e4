"""Settings: four places, one table, and what is wrong is said with the nearest right name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from findings.conftest import Only
from findings.made import found, made, noting, rule
from named import plainly
from stageprof.cli import main
from stageprof.configuration import settings_for, settings_for_run, settings_of
from stageprof_collectors.findings.rule import Limit, Limits
from stageprof_collectors.findings.settings import DEFAULTS, Settings
from stageprof_runtime.errors import UsageError

LIMITS = {"min_share": Limit(0.01, "one in a hundred"), "min_bytes": Limit(1e7, "ten MB")}


@pytest.fixture(autouse=True)
def rules(only: Only) -> None:
    only(rule("tiny-tasks"), rule("embedded-object", limits=LIMITS))


@pytest.fixture
def toml() -> Callable[[str], Path]:
    """Writes the nearest pyproject.toml."""

    def write(text: str) -> Path:
        path = Path("pyproject.toml").absolute()
        path.write_text(text)
        return path

    return write


def limit(value: float) -> Settings:
    return Settings(limits=frozenset({("embedded-object", "min_share", value)}))


FORMS: dict[str, tuple[str, str, dict[str, Any], Settings]] = {
    "off": (
        "[tool.stageprof.rules]\ntiny-tasks = false",
        "tiny-tasks=off",
        {"rules": {"tiny-tasks": False}},
        Settings(off=frozenset({"tiny-tasks"})),
    ),
    "limit": (
        "[tool.stageprof.rules.embedded-object]\nmin_share = 0.02",
        "embedded-object.min_share=0.02",
        {"rules": {"embedded-object": {"min_share": 0.02}}},
        limit(0.02),
    ),
    "severity": (
        "[tool.stageprof.severity]\nserious = 0.2",
        "severity.serious=0.2",
        {"severity": {"serious": 0.2}},
        Settings(serious=0.2),
    ),
    "on": (
        "[tool.stageprof.rules]\ntiny-tasks = true",
        " tiny-tasks = ON ,",
        {"rules": {"tiny-tasks": True}},
        Settings(),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_place_says_the_same_thing_in_its_own_form(
    form: str, toml: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, words, table, expected = FORMS[form]
    assert settings_of(table) == expected
    assert settings_for([words.rstrip(" ,")])[0] == expected
    monkeypatch.setenv("STAGEPROF_RULES", words)
    assert settings_of() == expected
    monkeypatch.delenv("STAGEPROF_RULES")
    toml(text)
    assert settings_of() == expected


def test_argument_goes_before_environment_before_project(
    toml: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    toml("[tool.stageprof.rules.embedded-object]\nmin_share = 0.1\nenabled = false")
    assert settings_of() == Settings(frozenset({"embedded-object"}), limit(0.1).limits)
    monkeypatch.setenv("STAGEPROF_RULES", "embedded-object.min_share=0.2,embedded-object=on")
    assert settings_of() == limit(0.2)
    assert settings_of({"rules": {"embedded-object": {"min_share": 0.3}}}) == limit(0.3)
    assert settings_for(["embedded-object.min_share=0.4"])[0] == limit(0.4)


def test_places_are_laid_over_each_other_one_by_one(
    toml: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    toml("[tool.stageprof.rules]\ntiny-tasks = false")
    monkeypatch.setenv("STAGEPROF_RULES", "embedded-object.min_share=0.2")
    both = Settings(frozenset({"tiny-tasks"}), limit(0.2).limits, moderate=0.05)
    assert settings_of({"severity": {"moderate": 0.05}}) == both


def test_settings_that_are_resolved_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGEPROF_RULES", "tiny-tasks=off")
    assert settings_of(DEFAULTS) is DEFAULTS


def test_project_file_is_the_nearest_one_upwards(
    toml: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    toml("[tool.stageprof.severity]\nserious = 0.2")
    deep = Path("a/b")
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert settings_of() == Settings(serious=0.2)
    Path("../pyproject.toml").write_text("[tool.other]")
    assert settings_of() == DEFAULTS


def test_setting_reaches_the_rule(only: Only, toml: Callable[[str], Path]) -> None:
    asked: list[Limits] = []
    only(rule("embedded-object", noting(asked), LIMITS))
    toml("[tool.stageprof.rules.embedded-object]\nmin_share = 0.5")
    made().findings()
    assert asked == [{"min_share": 0.5, "min_bytes": 1e7}]


WRONG = {
    "tiny-task=off": ("no rule 'tiny-task': did you mean tiny-tasks? (in ",),
    "foo=off": ("no rule 'foo' (in ", "expected one of column-chunks-for-training, "),
    "embedded-object.min_bites=1": ("no limit of embedded-object", "did you mean min_bytes?"),
    "embedded-object.foo=1": (
        "'foo' (in ",
        "expected one of min_bytes, min_share, ",
    ),
    "tiny-tasks.min_share=1": ("no limit of tiny-tasks 'min_share'", "expected none"),
    "severity.serous=1": ("no severity 'serous'", "did you mean serious?"),
    "embedded-object.min_share=much": ("embedded-object.min_share is 'much'", "expected a number"),
    "embedded-object.min_share=nan": ("embedded-object.min_share is nan", "expected a number"),
    "tiny-tasks=maybe": ("tiny-tasks is 'maybe'", "expected on or off"),
    "severity.serious=20": ("severity.serious is 20.0", "from 0 to 1"),
    "severity.serious=0.5": (
        "severities that begin at critical 0.3, serious 0.5, moderate 0.03",
        "critical at or above serious",
    ),
    "tiny-tasks": ("'tiny-tasks'", "expected RULE=off"),
    "=off": ("'=off'", "expected RULE=off"),
    "tiny-tasks=": ("'tiny-tasks='", "expected RULE=off"),
}


def test_a_name_like_none_that_there_is_gets_no_suggestion() -> None:
    with pytest.raises(UsageError) as error:
        settings_for(["foo=off"])
    assert "did you mean" not in str(error.value)


@pytest.mark.parametrize("word", WRONG)
def test_wrong_word_is_an_error_with_the_nearest_right_name(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in WRONG[word]:
        with pytest.raises(UsageError) as error:
            settings_for([word])
        assert text in str(error.value)
    monkeypatch.setenv("STAGEPROF_RULES", word)
    with pytest.raises(UsageError):
        made().findings()


@pytest.mark.parametrize(
    "table",
    [
        {"rule": {}},
        {"rules": []},
        {"rules": {"tiny-tasks": "off"}},
        {"rules": {"tiny-tasks": 0}},
        {"rules": {"tiny-tasks": None}},
        {"rules": {3: False}},
        {"rules": {"embedded-object": {"min_share": "0.1"}}},
        {"rules": {"embedded-object": {"min_share": True}}},
        {"severity": {"note": 0.01}},
        {"severity": {"serious": -0.1}},
        "tiny-tasks=off",
    ],
    ids=plainly,
)
def test_wrong_argument_is_an_error(table: Any) -> None:
    with pytest.raises(UsageError, match=r"expected|did you mean"):
        made().findings(table)


def test_wrong_name_in_a_project_file_is_an_error_that_names_the_file(
    toml: Callable[[str], Path],
) -> None:
    path = toml("[tool.stageprof.rules]\ntiny-task = false")
    with pytest.raises(UsageError, match="did you mean tiny-tasks") as error:
        settings_of()
    assert str(path) in str(error.value)


BROKEN: dict[str, Callable[[Path], object]] = {
    "no TOML": lambda path: path.write_text("[tool.stageprof"),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "another form": lambda path: path.write_text("tool = 3"),
    "too large": lambda path: path.write_text("# much\n" * 200_000),
    "no end": lambda path: path.write_text("a = " + "[" * 5000),
}


@pytest.mark.parametrize("how", BROKEN)
def test_project_file_that_cannot_be_read_is_warned_of_and_the_defaults_hold(how: str) -> None:
    BROKEN[how](Path("pyproject.toml"))
    with pytest.warns(UserWarning, match="1 file of settings cannot be read: .*pyproject.toml"):
        assert settings_of() == DEFAULTS


def test_the_warning_can_be_silenced_as_it_says(toml: Callable[[str], Path]) -> None:
    toml("[")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "1 file of settings")
        settings_of()


def test_working_directory_that_is_gone_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Path("gone").absolute()
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert settings_of() == DEFAULTS


@pytest.mark.parametrize("text", ["[", "[tool.stageprof.rules]\ntiny-task = false"])
def test_printing_never_fails_for_settings_and_says_what_is_wrong(
    text: str, toml: Callable[[str], Path]
) -> None:
    toml(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "Problem" in str(made())


@pytest.mark.parametrize("text", ["[", "[tool.stageprof.rules]\ntiny-task = false"])
def test_run_goes_on_whatever_the_project_file_holds(
    text: str, toml: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    toml(text)
    settings, problem = settings_for_run(["severity.serious=0.2"])
    assert settings == Settings(serious=0.2)
    assert "pyproject.toml" in problem


def test_run_takes_what_is_given_over_the_project_file(toml: Callable[[str], Path]) -> None:
    """What would make no sense by itself, as serious above critical, may do so over the file."""
    toml("[tool.stageprof.severity]\ncritical = 0.6")
    chosen = settings_for_run(["severity.serious=0.5"])
    assert chosen == (Settings(critical=0.6, serious=0.5), "")


def test_run_with_a_wrong_word_stops_before_the_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "--rule", "tiny-task=off", "-c", "print('ran')"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "did you mean tiny-tasks?" in err


def test_rule_option_switches_a_rule_off_and_says_so(
    only: Only, capsys: pytest.CaptureFixture[str]
) -> None:
    only(rule("tiny-tasks", [found("tiny-tasks", 5.0)]))
    main(["run", "-q", "-o", "r.stageprof", "-c", "pass"])
    assert main(["show", "--findings", "--rule", "tiny-tasks=off", "r.stageprof"]) == 0
    out = capsys.readouterr().out
    assert "tiny-tasks is slow" not in out
    assert "Rules off   tiny-tasks" in out
