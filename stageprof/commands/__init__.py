"""The commands: one file each, and the one table of them."""

from __future__ import annotations

import click

from stageprof.commands.app import app
from stageprof.commands.attach import attach
from stageprof.commands.baseline import baseline
from stageprof.commands.check import check
from stageprof.commands.compare import compare
from stageprof.commands.demo import demo
from stageprof.commands.export import export
from stageprof.commands.flame import flame
from stageprof.commands.inspect import inspect
from stageprof.commands.report import report
from stageprof.commands.run import run
from stageprof.commands.show import show
from stageprof.commands.snakeviz import snakeviz

#: Every command; `stageprof --help` lists them.
COMMANDS: tuple[click.Command, ...] = (
    run, show, report, app, check, compare, baseline, attach, export, flame, snakeviz, inspect,
    demo,
)  # fmt: skip
