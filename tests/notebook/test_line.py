"""What is typed after `%stageprof`: options, words of ours, and code that stays as it is."""

from __future__ import annotations

import inspect

import click
import pytest

pytest.importorskip("IPython")

from stageprof.commands.run import run
from stageprof.magic import line
from stageprof.options import Face, Options, valued
from stageprof.profile import profile
from stageprof_runtime.errors import UsageError


def test_the_rest_of_the_line_is_code_and_stays_as_it_is() -> None:
    code = "f('a  b', -x, \"it's\") + y[--z]"
    assert line.read(code) == (Options(), "", code)
    assert line.read(f"-q {code}") == (Options(quiet=True), "", code)


def test_every_option_is_understood() -> None:
    typed = "-o 'my run.stageprof' --report r.html --name etl --check --repeat 3 --deterministic"
    asked = line.read(f"{typed} --no-gil --native --rule tiny-tasks=off --rule a.b=2 -q x.sum()")
    assert asked.code == "x.sum()"
    assert asked.options == Options(
        path="my run.stageprof",
        report="r.html",
        label="etl",
        check=True,
        repeat=3,
        deterministic=True,
        gil=False,
        native=True,
        rules=("tiny-tasks=off", "a.b=2"),
        quiet=True,
    )


@pytest.mark.parametrize("form", ["--name=etl x", "--name etl x", "--name 'etl' x"])
def test_a_value_may_stand_beside_its_option_or_behind_it(form: str) -> None:
    assert line.read(form) == (Options(label="etl"), "", "x")


def test_code_that_begins_with_a_dash_comes_after_two() -> None:
    assert line.read("-q -- -x") == (Options(quiet=True), "", "-x")


@pytest.mark.parametrize("word", line.WORDS)
def test_words_of_ours_may_have_options_before_or_after(word: str) -> None:
    for typed in (f"{word} -q", f"-q {word}"):
        assert line.read(typed) == (Options(quiet=True), word, "")


@pytest.mark.parametrize("code", ["on + 1", "last[0]", "(last)", "lasting", "off.x", "on = 3"])
def test_variables_that_look_like_them_are_code(code: str) -> None:
    assert line.read(code) == (Options(), "", code)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("--bad x", "No such option"),
        ("--repeat 0 x", "0 is not in the range"),
        ("--repeat many x", "'many' is not a valid integer"),
        ("-o", "requires an argument"),
        ("--name=a\\ x", "cannot be read"),
        ("on off", "'off' after 'on'"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(typed: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        line.read(typed)
    assert "\n" not in str(caught.value)


def test_help_names_every_option_and_word() -> None:
    text = line.help_text()
    for flag in ("-o", "--report", "--check", "--no-gil", "--deterministic", "--name", "--repeat"):
        assert flag in text
    for word in line.WORDS:
        assert f"%stageprof {word}" in text
    assert max(map(len, text.splitlines())) <= 90


# -- one declaration ----------------------------------------------------------------------------


def test_python_has_each_choice_under_its_name_and_with_its_default() -> None:
    known = inspect.signature(profile).parameters
    assert {name: known[name].default for name in Options().recorded} == Options().recorded


def test_the_command_has_the_same_flags_and_words_as_the_magic() -> None:
    magic, command = (
        {p.name: (p.opts, p.secondary_opts, p.default, p.help) for p in c.params if _is_option(p)}
        for c in (line.magic, run)
    )
    both = set(magic) & set(command)
    assert {"path", "report", "label", "gil", "deterministic", "rules", "quiet"} <= both
    assert {name: magic[name] for name in both} == {name: command[name] for name in both}


def _is_option(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option)


def test_flags_with_a_value_are_known_from_the_declaration() -> None:
    assert valued(Face.COMMAND) == (
        "-o", "--output", "--report", "--html", "--name", "--rule",
    )  # fmt: skip
