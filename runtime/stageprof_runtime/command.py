"""`dask stageprof ...`: the commands of stageprof among Dask's own.

Every `dask scheduler` and `dask worker` imports what is registered with Dask's command line, so
this is here, where nothing heavy is imported; the commands are run by name, in this process, as
`python -m stageprof` runs them: with its messages and its exit statuses.
"""

from __future__ import annotations

import runpy
import sys

import click


@click.command(
    "stageprof",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def stageprof(arguments: tuple[str, ...]) -> None:
    """Say where the time of a Dask computation goes, stage by stage."""
    sys.argv = ["stageprof", *arguments]
    runpy.run_module("stageprof", run_name="__main__", alter_sys=True)
