"""`stageprof.compare`: recordings against recordings, and what shows the answer."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields

import pandas as pd

from stageprof.chosen import chosen
from stageprof.configuration import Given, settings_of
from stageprof.reading import reading
from stageprof.spread import Progress, spread
from stageprof_collectors.comparison.comparison import Compared, Options, compared
from stageprof_collectors.comparison.measured import Measured, measure
from stageprof_collectors.comparison.sentences import verdict
from stageprof_collectors.findings.settings import DEFAULTS, Settings
from stageprof_collectors.recording import Recording

#: What can be compared: a recording or the path of one, of a folder, or a glob.
One = Recording | str | os.PathLike[str]
logger = logging.getLogger("stageprof")


class Comparison(Compared):
    """What became of the baseline; `print` shows it, and so does a notebook."""

    @classmethod
    def of(cls, found: Compared) -> Comparison:
        """The same comparison with faces."""
        return cls(**{field.name: getattr(found, field.name) for field in fields(Compared)})

    def frame(self) -> pd.DataFrame:
        """Everything that was compared, one row each.

        Columns: kind ("time", "count" or "finding"), name, unit ("s", "B" or ""), before, after
        (medians; of findings the share of recordings that have it), ratio, low, high (of its 95 %
        interval), p (corrected for all that was tested), floor, judged ("worse", "better", "same"
        or "unknown"). A number that is not known is NaN.
        """
        return pd.DataFrame(list(_rows(self)), columns=_COLUMNS)

    def __str__(self) -> str:
        from stageprof.renderers import compare_terminal

        return compare_terminal.text(self)

    def __repr__(self) -> str:
        return f"<Comparison: {verdict(self)}>"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """What a notebook shows, and a terminal of IPython."""
        return {"text/html": self._repr_html_(), "text/plain": str(self)}

    def _repr_html_(self) -> str:
        from stageprof.renderers import compare_notebook

        return compare_notebook.html(self)

    def _repr_markdown_(self) -> str:
        from stageprof.renderers import compare_markdown

        return compare_markdown.text(self)


def compare(
    baseline: One | Sequence[One],
    candidate: One | Sequence[One],
    *,
    paired: bool = False,
    floor: float | None = None,
    force: bool = False,
    settings: Given = None,
) -> Comparison:
    """Compare recordings with those of a baseline; see docs/compare.md.

    ::

        found = stageprof.compare("base/", "head/")
        print(found)
        assert not found.regressions

    Sixteen recordings or more of a side are read by the workers of the active distributed client's
    cluster, if there is one and they see the files.

    Args:
        baseline: paths, folders, globs or recordings, one or several; of the same program.
        candidate: the same of what is to be judged. Times are judged by six or more on each side.
        paired: the recordings of both sides were made in turn, and are in that order.
        floor: the share by which times may differ without being a change; None learns it from how
            much the recordings of one side differ among themselves.
        force: judge times although the machine, versions, cluster, data or program differ.
        settings: of the diagnosis, as for `Recording.findings`.

    Raises:
        UsageError: a side has no complete recording of a run that did not fail, or pairs were asked
            for where there are none.
        RecordingError: a file cannot be read.
    """
    resolved = settings_of(settings)
    base = measured(baseline, "baseline", resolved)
    head = measured(candidate, "candidate", resolved)
    options = Options(paired=paired, floor=floor, force=force)
    return Comparison.of(compared(base, head, options))


def measured(
    side: One | Iterable[One],
    name: str,
    settings: Settings = DEFAULTS,
    progress: Progress | None = None,
    said: Callable[[str], None] | None = None,
) -> list[Measured]:
    """What is kept of the recordings of a side; each is forgotten before the next is read.

    Many are read by the workers of the cluster that is active, if one is.
    """
    given = [side] if isinstance(side, Recording | str | os.PathLike) else list(side)
    sources = list(_sources(given, name))
    files = [source for source in sources if isinstance(source, str)]
    there = spread(files, settings, progress, said or _say)
    done, found = len(there), []
    for source in sources:
        if isinstance(source, str) and source in there:
            found.append(there[source])
            continue
        if progress is not None and isinstance(source, str):
            progress(done, len(sources), source)
        found.append(_one(source, settings))
        done += 1
    return found


def _say(sentence: str) -> None:
    logger.warning("stageprof: %s", sentence)


def _one(source: Recording | str, settings: Settings) -> Measured:
    if isinstance(source, Recording):
        return measure(source, settings)
    with reading(source) as recording:
        return measure(recording, settings)


def _sources(given: Sequence[One], name: str) -> Iterator[Recording | str]:
    """Recordings, and the paths of those that are files; in the order given."""
    if not any(isinstance(each, Recording) for each in given):
        words = [each for each in given if not isinstance(each, Recording)]
        yield from map(os.fspath, chosen(words, name))
        return
    for each in given:
        if isinstance(each, Recording):
            yield each
        else:
            yield from map(os.fspath, chosen([each], name))


_COLUMNS = (
    "kind", "name", "unit", "before", "after", "ratio", "low", "high", "p", "floor", "judged",
)  # fmt: skip


def _rows(found: Compared) -> Iterator[tuple[object, ...]]:
    unknown = float("nan")
    for t in found.times:
        numbers = (t.before_s, t.after_s, *t.effect, t.p, t.floor)
        yield ("time", t.name, "s", *numbers, str(t.judged))
    for c in found.counts:
        before, after = c.before[1], c.after[1]
        ratio = after / before if before else unknown
        numbers = (before, after, ratio, unknown, unknown, unknown, unknown)
        yield ("count", c.what.name, c.what.unit, *numbers, str(c.judged))
    for f in found.findings:
        had = (f.before[0] / f.before[1], f.after[0] / f.after[1])
        yield ("finding", f.rule, "", *had, *[unknown] * 5, str(f.judged))
