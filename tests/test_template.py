"""Processes that are forked for tests are processes like others, and none of them is overlooked."""

from __future__ import annotations

import os
import subprocess

import psutil
import pytest

import clusters
import conftest
from template import Template

pytestmark = pytest.mark.skipif(clusters.FRESH, reason="every process is a new interpreter")

SCHEDULER = ("scheduler", "--port", "0", "--no-dashboard", "--host", "127.0.0.1")


def test_a_command_runs_in_a_process_of_its_own_until_it_is_told_to_end() -> None:
    with clusters.process(*SCHEDULER) as started:
        assert not isinstance(started, subprocess.Popen)
        assert clusters.address_of(started).startswith("tcp://127.0.0.1:")
        assert psutil.Process(started.pid).ppid() not in (0, 1, os.getpid())
    assert not psutil.pid_exists(started.pid)


def test_one_that_is_left_is_found() -> None:
    with clusters.process(*SCHEDULER) as started:
        clusters.address_of(started)
        clusters.shared.discard(started.pid)
        children = [p.pid for p in conftest.started()]
        clusters.shared.add(started.pid)
    assert started.pid in children


def test_another_environment_is_not_that_of_the_template(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test sets for the processes that it starts reaches them, in a new interpreter."""
    with clusters.process(*SCHEDULER):
        monkeypatch.setenv("DASK_TEMPORARY_DIRECTORY", "/tmp")
        with clusters.process(*SCHEDULER) as started:
            clusters.address_of(started)
            assert isinstance(started, subprocess.Popen)


def test_what_has_ended_may_be_told_to_end_again() -> None:
    environment = dict(os.environ)
    template = Template(environment)
    forked = template.start(["scheduler", "--help"], os.environ.get("PYTHONPATH", ""))
    assert "Usage" not in forked.stderr.read()  # that is written elsewhere, and it has ended
    forked.wait(30)
    forked.terminate()
    forked.kill()
    forked.wait(1)
    forked.stderr.close()
    template.close()
    assert not psutil.pid_exists(template.pid)


def test_what_libraries_set_when_they_are_imported_takes_no_new_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SciPy's readers of matrices import threadpoolctl, which does."""
    monkeypatch.setenv("KMP_DUPLICATE_LIB_OK", "True")
    with clusters.process(*SCHEDULER) as started:
        clusters.address_of(started)
        assert not isinstance(started, subprocess.Popen)
