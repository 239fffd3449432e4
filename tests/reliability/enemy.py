"""A recording, and findings, whose every text is an enemy's.

What executes sets `window.hacked`; what merely gets into a page as an element is found by
`FOREIGN`, for a policy may keep it from executing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from dask.utils import key_split

from findings.made import found, rule
from replay.handmade import CLIENT, LANE, SCHEDULER, ns
from stageprof_collectors.findings.finding import Finding, Fix, Where
from stageprof_collectors.findings.rule import Rule
from stageprof_collectors.storage.file import Writer
from stageprof_runtime.batch import pack
from stageprof_runtime.event import (
    CALLED,
    CHAIN,
    COLUMN,
    FLAME,
    GROUPED,
    LINE,
    MARK,
    NODE,
    OBJECT,
    SAMPLE,
    SHARE,
    STOOD,
    TRAIN,
    UNFUSED,
    UNUSED,
    Place,
)
from stageprof_runtime.probes.failure import part
from stageprof_runtime.stage import STEP
from ui.observed import Observed

#: One of each kind of text that has acted somewhere on whoever showed it.
PAYLOADS: Final = {
    "attribute": "<img src=x onerror=window.hacked=1>",
    "quotes": "'\"><svg onload=window.hacked=2><a href='",
    "script": "<script>window.hacked=3</script>",
    "script end": "</script><script>window.hacked=4</script><!--",
    "link": "[x](javascript:window.hacked=5) javascript:window.hacked=5",
    "svg": "<svg><animate onbegin=window.hacked=6 attributeName=x dur=1s></svg>",
    "frame": "</textarea></title><iframe srcdoc='<script>parent.hacked=7</script>'></iframe>",
    "fetch": "<link rel=stylesheet href=//evil.example/x><style>@import'//evil.example'</style>",
    "template": "{{ [].constructor.constructor('window.hacked=8')() }} <%= 7*7 %> ${hacked=8}",
    "hover": "@key{safe} @{key}{custom} $name $index",
    "formula": "$$\\href{javascript:window.hacked=9}{x}$$ \\(\\alpha\\)",
    "entity": "&lt;img src=x onerror=window.hacked=10&gt; &#60;script&#62;",
    "surrogate": "lone \ud800 surrogate",
    "right to left": "\u202egnp.exe\u2066\u200b\U000e0041\u2028",
    "terminal": "\x1b]0;owned\x07\x1b[31mred\x9b31m\r\n\ttab\x00nul",
    "markdown": "`code` ``` a|b @team [link](https://evil.example) www.evil.example <!-- -->",
    "markup": "[red]markup[/red] [link=https://evil.example]x[/link] :smile: **b**",
    "cell": "=cmd|' /C calc'!A0",
    "prototype": "__proto__",
    "long": "x" * 5000,
}  # fmt: skip
TEXTS: Final = tuple(PAYLOADS.values())

#: Elements that no page of ours has, counted through all shadow roots.
FOREIGN: Final = """() => {
  const bad = 'img[src="x"], iframe, link[href*="evil"], svg[onload], animate, [onerror], '
    + 'a[href^="javascript:"], a[href*="//evil"]';
  const inner = (root) => [...root.querySelectorAll('*')].filter((e) => e.shadowRoot);
  const all = (root) => [...root.querySelectorAll(bad),
    ...inner(root).flatMap((e) => all(e.shadowRoot))];
  return all(document).map((e) => e.outerHTML.slice(0, 200));
}"""

END_MS: Final = 2000
#: What the header of a recording says of the run and its machine.
_SAID: Final = (
    "label", "program", "started", "stageprof", "dask", "distributed", "python", "platform",
    "machine", "cpus",
)  # fmt: skip


class Enemy(Observed):
    """A worker for each payload, and a row of every table that holds text."""

    def __init__(self, *, failed: bool = True) -> None:
        super().__init__(len(TEXTS))
        self._failed = failed
        self._renamed()
        self._runs_of_all()
        for text in TEXTS:
            self._client_says(text)

    def _renamed(self) -> None:
        """Hosts are an enemy's, and addresses as far as there is no blank in them."""
        for number, (old, text) in enumerate(zip(tuple(self._workers), TEXTS, strict=True)):
            address = f"{old.name}{''.join(text.split())[:80]}"
            new = Place("worker", _carried(text), old.pid, _carried(address), 1)
            self._workers[number] = new
            self._rows[new] = self._rows.pop(old)
            seen = self._rows[SCHEDULER]
            row = next(i for i, r in enumerate(seen) if str(r[3]).startswith(f"{old.name} "))
            seen[row] = (*seen[row][:3], f"{new.name} 1 0 {text}")

    def _runs_of_all(self) -> None:
        graph, last = self.graph(0, 1, 2), 0
        for worker, text in enumerate(TEXTS):
            cause = -1 - graph
            for at in (10, 700):
                key = (text, worker, at)
                last = self.run(worker, at, at + 600, cause=cause, key=key, wanted=at > 10)
                cause = last
            self.run(worker, 1400, 1500, cause=last, key=f"{text}-{worker}", status=1)
            told = (part(text), part(key_split(f"{text}-{worker}")), f"/u/{part(text)}.py:3")
            row = (MARK, ns(1501), "task failed", "\t".join(told))
            self._rows[self._workers[worker]].append(row)
            self._worker_says(worker, text)
        self.wait(5, END_MS - 5, last, END_MS - 10)

    def _worker_says(self, worker: int, text: str) -> None:
        for at in (100, 600, 1000):
            self.took(worker, at, 100 + worker, 50)
            self.sample(at, "gil.contention", 0.1, worker)
            self.sample(at, text, 0.5, worker)
        self.look(text, text, f"/u/{text}:3 {text}", text, 500, worker)
        self.look(text, text, text, "library", 300, worker)
        self.sent(worker, (worker + 1) % len(TEXTS), 20, 100, 10_000_000)
        self.held(worker, 10, 400)
        self.waited(worker, 400, 900)
        self.stood(worker, 0, 900, f"/u/{text}:3 {text}")
        for name in ("gil source", "gil holders", "hook disabled", "cluster not joined",
                     "not instrumented", "objects not examined", "task failed", "not loaded",
                     "left its thread", "fetches", "no worker fits", "held up", text):  # fmt: skip
            self.said(worker, name, text)
            self._rows[SCHEDULER].append(
                (MARK, ns(1), name, f"{self._workers[worker].name} {text}")
            )
        self.said(worker, "gil source", f"ticker: {text}")
        self.said(worker, "thread", f"{100 * worker + 1} {text}")
        self.said(worker, "not loaded", f"{part(text)}\t{part(text)}\t/u/{part(text)}.py:3")
        self.said(worker, "fetches", f"9 /u/{text}.py:3")
        self.said(worker, "no worker fits", "\t".join((part(text), f"{part(text)}=1", part(text))))
        self.sample(1100, "tasks.unrunnable", 3, worker)
        self.said(worker, "held up", f"{worker}\t{part(text)}\t/u/{text}.py:3 Lock {text}")
        self._rows[self._workers[worker]] += [
            (NODE, 0, -1, text, text, 3), (NODE, 1, 0, text, f"/u/{text}.py", 4),
            (FLAME, ns(900), STEP["compute"], text, "python", 1, 40, 400_000_000),
            (STOOD, ns(10), ns(400), 100 * worker + 1, 1, f"/u/{text}.py:4 {text}"),
            (CALLED, STEP["compute"], text, text, 1, text, text, 2, 3, 3, 10**7, 10**8),
            (COLUMN, ns(900), text, text, "object", "str", 10**9, 10**7),
            (COLUMN, ns(900), text, text, text, text, 10**9, 10**7),
            (GROUPED, ns(900), text, f"/u/{text}.py:4 {text}", 9, 10**6, 10**7),
            (GROUPED, ns(900), text, text, 9, 10**6, 10**7),
        ]  # fmt: skip

    def _client_says(self, text: str) -> None:
        """Lines, objects and trainings of the user's."""
        file = f"/u/{text}.py"
        raised = (MARK, ns(END_MS), "region raised", f"program\t{part(text)}\t")
        self._rows[CLIENT] += [
            *([raised] if self._failed else []),
            (LINE, text, file, 7, 1), (SHARE, ns(1), STEP["build"], text, 3, 10**8, 10**6),
            (NODE, 2 * len(self._rows[CLIENT]), -1, text, file, 9),
            (FLAME, ns(900), STEP["build"], text, text, -1, 40, 40_000_000),
            (CALLED, STEP["build"], text, file, 1, text, file, 2, 3, 3, 10**7, 10**8),
            (OBJECT, ns(1), 1, 0, text, text, text, text, file, 7, 10**8, 20, 1, 20, 10**8),
            (UNUSED, ns(1), text, "columns", text, text, 10, 1000),
            (UNFUSED, ns(1), text, text), (UNFUSED, ns(1), part(text), text),
            (CHAIN, ns(1), text, text, 10, 1000), (CHAIN, ns(1), part(text), text, 10, 1000),
            (TRAIN, ns(1), ns(900), LANE, text, 1, file, 7, text, text, text, text,
             40, 3, 0, 10**6, 40, 10**9, 0, 4, 1),
            (SAMPLE, ns(1), text, float("nan")), (SAMPLE, ns(2), text, float("inf")),
        ]  # fmt: skip

    def batches(self) -> list[bytes]:
        """Its batches, two of each place."""
        start = (MARK, ns(0), "region start", f"{LANE} {LANE}")
        stop = (MARK, ns(END_MS), "region stop", f"{LANE}")
        out = []
        for place, rows in self._rows.items():
            own = [start, *rows, stop] if place == CLIENT else rows
            drops = dict.fromkeys(TEXTS, 2)
            out.append(pack(place, 0, ns(0), []))
            out.append(pack(place, 1, ns(END_MS), own, drops=drops, cost={TEXTS[0]: [3, 900]}))
        return out


def _carried(text: str) -> str:
    """What a host or an address may be: UTF-8 carries it, or the batch is none."""
    return text.encode("utf-8", "backslashreplace").decode()


def header() -> dict[str, Any]:
    """What an enemy's recording says of itself."""
    return dict(zip(_SAID, cycle(TEXTS), strict=False)) | {"label": " ".join(TEXTS[:8])}


def written(path: Path, *, failed: bool = True) -> Path:
    """The recording as a file; of a run that failed, or of one that did not."""
    with Writer(path, header()) as writer:
        writer.write(*Enemy(failed=failed).batches())
    return path


def rules() -> Iterator[Rule]:
    """Rules whose findings say it too, a payload each."""
    for number, (name, text) in enumerate(PAYLOADS.items()):
        said = _carried(text)  # as a recording says it
        yield rule(f"bad-{name.replace(' ', '-')}", [_finding(name, said, 1 + number / 10)])


def _finding(name: str, text: str, saving_s: float) -> Finding:
    return found(
        f"bad-{name.replace(' ', '-')}", saving_s, headline=text, evidence={text: text, "n": 1},
        fix=Fix(text, text), where=Where(text, 3, text, text, text),
    )  # fmt: skip
