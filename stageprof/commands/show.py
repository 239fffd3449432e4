"""`stageprof show`: the summary of a recording."""

from __future__ import annotations

import sys

import click

from stageprof.reading import reading
from stageprof.renderers import document, markdown, terminal
from stageprof_runtime.errors import UsageError


@click.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; docs/json.md.")
@click.option("--markdown", "as_markdown", is_flag=True, help="For issues and CI comments.")
def show(*, file: str, as_json: bool, as_markdown: bool) -> None:
    """Print the summary of a recording."""
    if as_json and as_markdown:
        raise UsageError("both --json and --markdown", expected="one form")
    with reading(file) as recording:
        if as_json:
            click.echo(document.text(recording), nl=False)
        elif as_markdown:
            click.echo(markdown.text(recording.summary), nl=False)
        else:
            terminal.show(recording.summary, sys.stdout)
