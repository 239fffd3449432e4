"""What `stageprof.check` found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.preflight.checkup import Checkup
from stageprof_collectors.summary import Summary


@dataclass(frozen=True)
class Checked:
    """What was found before anything ran; iterates over its findings, gravest first."""

    found: Checkup
    label: str = "collections"
    #: rules that were switched off
    off: tuple[str, ...] = ()

    @property
    def findings(self) -> list[Finding]:
        """Gravest first."""
        return list(self.found.findings)

    @property
    def not_looked_at(self) -> list[str]:
        """What was not looked at, and why."""
        return list(self.found.unseen)

    @property
    def summary(self) -> Summary:
        """In the form that the faces show."""
        return Summary(
            self.label, 0.0, self._facts(), self.found.findings, (), self.off, (), (), None, (),
            "", (), "", "", said=self._said(),
        )  # fmt: skip

    def _said(self) -> str:
        """Where nothing is worth acting on: what that is worth."""
        if self.found.findings:
            return "Notes only: they save little, as far as can be told before a run"
        if self.found.stopped is not None:
            return "Nothing to change up to where it was stopped"
        return ""

    def _facts(self) -> tuple[str, ...]:
        found = self.found
        if not found.graphs:
            return ("nothing was handed to Dask",)
        looked = f"{count(found.graphs, 'graph')}, about {count(found.tasks, 'task')}"
        facts = (looked, f"looked for {seconds(found.seconds)}", found.source)
        if found.stopped is None:
            return facts
        return (*facts, f"stopped{f' at {found.stopped}' if found.stopped else ''}")

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.found.findings)

    def __len__(self) -> int:
        return len(self.found.findings)

    def __bool__(self) -> bool:
        """Whether anything above a note was found."""
        return bool(self.found.above_note)

    def __str__(self) -> str:
        from stageprof.renderers import check

        return check.text(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """What a notebook shows, and a terminal of IPython."""
        from stageprof.renderers import check

        return {"text/html": check.html(self), "text/plain": check.text(self)}

    def _repr_markdown_(self) -> str:
        from stageprof.renderers import check

        return check.markdown(self)
