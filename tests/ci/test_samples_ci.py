"""The workflows in samples/ci: each of their steps is run here, as CI would run it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

CI = Path(__file__).parents[2] / "samples" / "ci"

#: The only commands that are not run here: what they install is what is tested.
INSTALLATION = "pip install stageprof pytest"

#: Ten times as many tasks for the same result.
SLOWER = ("PIECES = 8", "PIECES = 80")


#: A benchmark that a pull request removes, or calls otherwise.
GONE = """

@pytest.mark.stageprof
def test_gone() -> None:
    revenue()
"""


class Step(NamedTuple):
    """A step of a workflow that runs something."""

    script: str
    env: dict[str, str]
    when: str


def github(job: str) -> list[Step]:
    """The scripts of a job of the workflow."""
    steps = yaml.safe_load((CI / "github.yml").read_text())["jobs"][job]["steps"]
    return [
        Step(step["run"], step.get("env", {}), step.get("if", ""))
        for step in steps
        if "run" in step
    ]


def gitlab() -> list[Step]:
    """The scripts of the job."""
    job = yaml.safe_load((CI / "gitlab.yml").read_text())["benchmarks"]
    return [Step(script, {}, "") for script in (*job["before_script"], *job["script"])]


class Checkout:
    """A folder like the one that CI gives a job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(CI / "benchmarks", folder / "benchmarks")
        (folder / "pytest.ini").touch()
        self.summary = folder.parent / "summary.md"
        self.summary.touch()

    def run(self, steps: list[Step], event: str, **variables: str) -> int:
        """Run what this event runs; the status of the first step that fails."""
        kept = {"PATH", "HOME", "TMPDIR", "LANG"}
        env = {name: value for name, value in os.environ.items() if name in kept}
        env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
        env |= {"GITHUB_STEP_SUMMARY": str(self.summary), "PYTHONDONTWRITEBYTECODE": "1"}
        for step in _due(steps, event):
            env |= {
                name: value.replace("${{ github.base_ref }}", "main")
                for name, value in step.env.items()
            }
            line = ["bash", "-e", "-o", "pipefail", "-c", step.script]
            done = subprocess.run(
                line,
                cwd=self.folder,
                env=env | variables,
                capture_output=True,
                text=True,
                check=False,
            )
            self.said = done.stdout + done.stderr
            if done.returncode:
                return done.returncode
        return 0

    def become_slower(self) -> None:
        """What a pull request does."""
        path = self.folder / "benchmarks" / "test_orders.py"
        path.write_text(path.read_text().replace(*SLOWER))


def _due(steps: list[Step], event: str) -> Iterator[Step]:
    for step in steps:
        if step.script != INSTALLATION and step.when in ("", f"github.event_name == '{event}'"):
            yield step


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout")


def test_workflows_are_what_github_and_gitlab_read() -> None:
    """And no name that an outsider chooses stands inside a script."""
    workflow: dict[Any, Any] = yaml.safe_load((CI / "github.yml").read_text())
    scripts = [step for job in workflow["jobs"] for step in github(job)]

    known = {"name", True, "permissions", "concurrency", "jobs"}  # YAML 1.1 reads `on` so
    assert set(workflow) == known
    assert "github.event_name == 'push' && github.ref" in workflow["concurrency"]["group"]
    assert workflow["permissions"] == {"contents": "read"}
    assert not [step.script for step in scripts if "${{" in step.script]
    assert {step.when for step in scripts} == {
        "", "github.event_name == 'push'", "github.event_name == 'pull_request'",
    }  # fmt: skip


def test_github_keeps_a_baseline_and_compares_with_it(checkout: Checkout) -> None:
    """What a pull request made worse fails it, and stands in the summary."""
    steps = github("baseline")
    assert checkout.run(steps, "push", GITHUB_REF_NAME="main") == 0
    assert "test_orders.py::test_revenue" in checkout.said

    checkout.become_slower()
    assert checkout.run(steps, "pull_request") == 1
    summary = checkout.summary.read_text()
    assert "test_orders.py::test_revenue" in summary
    assert "tasks" in summary
    assert "16" in summary
    assert "160" in summary


@pytest.mark.alone
@pytest.mark.nightly
def test_a_pull_request_that_changes_nothing_or_has_no_baseline_is_fine(
    checkout: Checkout,
) -> None:
    steps = github("baseline")
    assert checkout.run(steps, "pull_request") == 0
    assert "Nothing is kept yet to compare" in checkout.summary.read_text()

    assert checkout.run(steps, "push", GITHUB_REF_NAME="main") == 0
    checkout.summary.write_text("")
    assert checkout.run(steps, "pull_request") == 0
    assert checkout.summary.read_text()
    assert "Nothing is kept yet" not in checkout.summary.read_text()


@pytest.mark.nightly
def test_gitlab_keeps_a_baseline_and_compares_with_it(checkout: Checkout) -> None:
    steps, request = gitlab(), {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
    assert checkout.run(steps, "", **request) == 0
    assert "Nothing is kept yet to compare recordings/test_orders.py" in checkout.said
    assert checkout.run(steps, "", CI_COMMIT_REF_NAME="main") == 0

    checkout.become_slower()
    assert checkout.run(steps, "", **request) == 1
    [report] = (checkout.folder / "reports").iterdir()
    assert report.name.startswith("test_orders.py-test_revenue-")
    assert "<failure" in report.read_text()


def test_gitlab_lets_merge_requests_see_the_baseline_and_not_replace_it() -> None:
    """By default what a protected branch caches is another cache, and every job writes its own."""
    job = yaml.safe_load((CI / "gitlab.yml").read_text())["benchmarks"]
    policies = {rule["if"]: rule["variables"]["POLICY"] for rule in job["rules"]}

    assert job["cache"]["unprotect"] is True
    assert job["cache"]["policy"] == "$POLICY"
    assert policies == {
        '$CI_PIPELINE_SOURCE == "merge_request_event"': "pull",
        "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH": "pull-push",
    }


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def become_target(checkout: Checkout) -> None:
    """What is there now is on the target branch."""

    def git(*words: str) -> None:
        name = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *name, *words], cwd=checkout.folder, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-q", "-m", "what is there")
    git("update-ref", "refs/remotes/origin/main", "main")


@pytest.mark.nightly
@needs_git
def test_github_compares_side_by_side(checkout: Checkout) -> None:
    become_target(checkout)
    checkout.become_slower()

    assert checkout.run(github("side-by-side"), "pull_request") == 1
    assert "task" in checkout.summary.read_text()
    assert "7 recordings against 7" in checkout.summary.read_text()


def once() -> list[Step]:
    """Both sides recorded once: what is tried is not what times say."""
    rounds = ("1 2 3 4 5 6 7", "1")
    return [step._replace(script=step.script.replace(*rounds)) for step in github("side-by-side")]


@needs_git
def test_the_pull_request_that_brings_the_benchmarks_is_fine(checkout: Checkout) -> None:
    benchmarks = checkout.folder / "benchmarks"
    benchmarks.rename(checkout.folder.parent / "benchmarks")
    become_target(checkout)
    (checkout.folder.parent / "benchmarks").rename(benchmarks)

    assert checkout.run(once(), "pull_request") == 0, checkout.said
    assert "has no counterpart on the target branch" in checkout.summary.read_text()


@needs_git
def test_what_fails_or_has_another_name_on_the_target_branch_is_said(checkout: Checkout) -> None:
    """It is no fault of the pull request, which may mend it."""
    path = checkout.folder / "benchmarks" / "test_orders.py"
    good = path.read_text()
    path.write_text(good.replace("== 1_980_000", "== 0") + GONE)
    become_target(checkout)
    path.write_text(good)

    assert checkout.run(once(), "pull_request") == 0, checkout.said
    summary = checkout.summary.read_text()
    assert re.search("test_orders.py-test_revenue-[0-9a-f]+ did not pass on the target", summary)
    assert re.search("test_orders.py-test_gone-[0-9a-f]+ is on the target branch only", summary)
