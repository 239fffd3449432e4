"""A comparison as JUnit's XML: a test case for all that was judged, a failure for what is worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from stageprof_collectors.comparison import sentences
from stageprof_collectors.comparison.comparison import Compared
from stageprof_collectors.comparison.counts import Judged
from stageprof_collectors.findings.quantity import seconds
from stageprof_collectors.text import safe

#: Characters of a text that are kept.
_MOST: Final = 1000


class _Case(NamedTuple):
    group: str
    name: str
    judged: Judged
    said: str


def text(found: Compared) -> str:
    """The document; what XML forbids in a text is shown as its code."""
    cases = _apart(_cases(found))
    suite = Element("testsuite", name=f"stageprof compare {safe(found.program)}".strip())
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(case.judged == Judged.WORSE for case in cases)))
    suite.set("skipped", str(sum(case.judged == Judged.UNKNOWN for case in cases)))
    suite.set("errors", "0")
    program = ".".join(filter(None, ("stageprof", safe(found.program, limit=_MOST))))
    for case in cases:
        _case(suite, program, case)
    suites = Element("testsuites")
    suites.append(suite)
    indent(suites)
    return tostring(suites, "unicode", xml_declaration=False) + "\n"


def _case(suite: Element, program: str, case: _Case) -> None:
    """A program has cases of its own: of two with one name a reader keeps the first."""
    made = SubElement(suite, "testcase", classname=f"{program}.{case.group}", name=case.name)
    if case.judged == Judged.WORSE:
        SubElement(made, "failure", message=_text(case.said)).text = _text(case.said)
    elif case.judged == Judged.UNKNOWN:
        SubElement(made, "skipped", message=_text(case.said))


def _cases(found: Compared) -> Iterator[_Case]:
    why = {blame.stage: sentences.blamed(blame) for blame in found.blames}
    blamed, drift = "; ".join(why.values()), sentences.drift(found)
    for t in found.times:
        if t.name in ("outside", "unexplained"):
            continue
        took = f"{seconds(t.before_s)} -> {seconds(t.after_s)}"
        said = f"{took} ({sentences.by(t)})"
        if t.judged == Judged.WORSE:
            said += f": {why.get(t.name, blamed)}" if blamed else ""  # type: ignore[call-overload]
            said += f" ({drift})" if drift else ""
        elif t.judged == Judged.UNKNOWN:
            said += f": {sentences.unjudged(found) or 'too short to be judged'}"
        yield _Case("times", t.name, t.judged, said)
    for c in found.counts:
        before, after = (sentences.spread(c, side) for side in (c.before, c.after))
        said = f"{c.what.title}: {before} -> {after} ({sentences.times_as_many(c)})"
        yield _Case("counts", c.what.name, c.judged, said)
    for f in found.findings:
        said = f"{f.headline} ({sentences.of_recordings(f)})"
        if f.judged == Judged.UNKNOWN:
            said += f": {sentences.unjudged_findings(found)}"
        yield _Case("findings", f.rule, f.judged, said)


def _apart(cases: Iterable[_Case]) -> list[_Case]:
    """The same under names of their own: of one name the second gets a number."""
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for case in cases:
        seen[case[:2]] += 1
        number = seen[case[:2]]
        found.append(case._replace(name=_text(case.name) + (f" ({number})" if number > 1 else "")))
    return found


def _text(value: str) -> str:
    return safe(value, limit=_MOST)
