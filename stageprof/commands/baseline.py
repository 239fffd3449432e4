"""`stageprof baseline`: recordings kept by branch, machine and versions, to compare with."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import click

from stageprof import baseline as kept
from stageprof.alphabet import echo
from stageprof.reading import roomy
from stageprof.renderers import baseline as renderer
from stageprof_runtime.errors import UsageError

#: What CI calls the branch; looked at where no --branch is given.
VARIABLES = ("GITHUB_REF_NAME", "CI_COMMIT_REF_NAME")

_branch = click.option("--branch", metavar="B", help="Only those of this branch.")


@click.group(no_args_is_help=False)
def baseline() -> None:
    """Keep recordings by branch, machine and versions, to compare with."""


@baseline.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--dir", "folder", required=True, metavar="DIR", help="Where they are kept.")
@click.option(
    "--branch", envvar=list(VARIABLES), metavar="B", help="Default: CI's, or what git says."
)
@roomy
def save(*, files: tuple[str, ...], folder: str, branch: str | None) -> None:
    """Copy recordings (files, or folders of them) into a baseline."""
    found = kept.recordings(files)
    if branch is None:
        branch = _git_branch()
    done = [_told(each) for each in kept.save(found, Path(folder), branch)]
    if all(isinstance(each, kept.Refused) for each in done):
        raise UsageError("no recording is of a run that ended well", do="record again")
    echo(renderer.total(sum(getattr(each, "new", False) for each in done), "Kept"))


def _told(each: kept.Saved | kept.Refused) -> kept.Saved | kept.Refused:
    if isinstance(each, kept.Refused):
        echo(f"stageprof: {renderer.refused(each)}", err=True)
    else:
        echo(f"{'kept' if each.new else 'there already'}  {renderer.line(each.kept)}")
    return each


@baseline.command("list")
@click.argument("folder", metavar="DIR")
@_branch
@click.option("--like", metavar="FILE", help="Only those of the program that FILE recorded.")
@click.option("--paths", is_flag=True, help="The files, one on each line, for stageprof compare.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; docs/ci.md.")
@roomy
def list_(*, folder: str, branch: str | None, like: str | None, paths: bool, as_json: bool) -> None:
    """List the recordings of a baseline."""
    if paths and as_json:
        raise UsageError("both --paths and --json", expected="one form")
    found = kept.kept(Path(folder), branch)
    if like is not None:
        found, warning = kept.like(found, kept.described(kept.recordings([like])[0]))
        if warning:
            click.echo(f"stageprof: {warning}", err=True)
    if paths:
        for each in found:
            echo(each.path)
    elif as_json:
        echo(renderer.json_text(found), nl=False)
    else:
        renderer.show(found, sys.stdout)


@baseline.command()
@click.argument("folder", metavar="DIR")
@click.option(
    "--keep", type=click.IntRange(min=0), required=True, metavar="N",
    help="How many stay of each program, machine and versions: the newest.",
)  # fmt: skip
@click.option("--together", is_flag=True, help="Count those of all machines and versions together.")
@_branch
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
def prune(*, folder: str, keep: int, together: bool, branch: str | None, dry_run: bool) -> None:
    """Remove the oldest recordings of a baseline, and say which."""
    done = 0
    for each in kept.surplus(kept.kept(Path(folder), branch), keep, together=together):
        if dry_run or kept.removed(each, Path(folder)):
            done += 1
            echo(f"{'would remove' if dry_run else 'removed'}  {renderer.line(each)}")
        else:
            why = "left, for it was changed since" if each.path.exists() else "gone already"
            echo(f"{why}  {renderer.line(each)}")
    echo(renderer.total(done, "Would remove" if dry_run else "Removed"))


def _git_branch() -> str:
    git = shutil.which("git")
    line = [git or "git", "branch", "--show-current"]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=10, check=False)  # noqa: S603 (no part of it is given)
    except (OSError, subprocess.TimeoutExpired):
        return _no_branch()
    return done.stdout.strip() or _no_branch()


def _no_branch() -> str:
    raise UsageError("git names no branch here", expected="--branch B")
