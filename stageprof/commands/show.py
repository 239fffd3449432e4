"""`stageprof show`: the summary of a recording, or its findings in full."""

from __future__ import annotations

import sys

import click

from stageprof.alphabet import echo
from stageprof.configuration import settings_for
from stageprof.options import ruled
from stageprof.progress import Progress
from stageprof.reading import reading, roomy
from stageprof.recording import Recording
from stageprof.renderers import document, findings, markdown, terminal
from stageprof_collectors.findings.settings import Settings
from stageprof_collectors.summary import Summary, summarize
from stageprof_collectors.text import safe
from stageprof_runtime.errors import UsageError


@click.command()
@click.argument("file")
@click.option("--findings", "in_full", is_flag=True, help="Every finding in full, with its fix.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; docs/json.md.")
@click.option("--markdown", "as_markdown", is_flag=True, help="For issues and CI comments.")
@roomy
@ruled
def show(
    *, file: str, in_full: bool, as_json: bool, as_markdown: bool, rules: tuple[str, ...]
) -> None:
    """Print the summary of a recording: what to change, and where the time went."""
    if in_full + as_json + as_markdown > 1:
        raise UsageError("several of --findings, --json and --markdown", expected="one form")
    settings, warning = settings_for(rules)
    if warning:
        click.echo(safe(f"stageprof: {warning}", limit=2000), err=True)
    with reading(file) as recording:
        if as_json:
            text = document.text(recording, settings)
        elif as_markdown:
            text = markdown.text(_summary(recording, settings))
        else:
            form = findings if in_full else terminal
            form.show(_summary(recording, settings), sys.stdout)
            return
    echo(text, nl=False)


def _summary(recording: Recording, settings: Settings) -> Summary:
    with Progress(sys.stderr) as progress:
        return summarize(recording, settings, progress=progress)
