"""`stageprof demo`: a slow computation to profile, for people who have none at hand."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stageprof import program
from stageprof.commands.run import profiled
from stageprof.options import Options

#: In a folder that is no package, for frames of packages of ours are never the user's line.
PROGRAM = Path(__file__).parents[1] / "demo" / "orders.py"


@click.command()
@click.option("-o", "--output", default="demo.stageprof", show_default=True, metavar="FILE")
def demo(*, output: str) -> int:
    """Profile a built-in slow computation on a local cluster, in about ten seconds."""
    return profiled(program.script(str(PROGRAM), ()), Options(path=output), sys.stdout)
