"""The snakeviz page of a profile as one file: its own template, scripts and styles.

snakeviz's server is not used, for it opens any path on the machine for whoever reaches its port. Of
the template three things are changed: scripts and styles stand in the page instead of being loaded,
the worker takes its libraries from the page instead of a server elsewhere, and a policy forbids the
page to ask anybody for anything.
"""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

from tornado.template import Template

from stageprof.pages import inline
from stageprof_collectors.profiles.stats import REGION, Function, Stats
from stageprof_collectors.text import safe
from stageprof_runtime.errors import UsageError

#: Functions of a page, those with most time: some thousand draw without delay.
MOST: Final = 3_000
_LIMIT: Final = 300

_WORKER_LIBRARIES: Final = ("vendor/immutable.min.js", "vendor/lodash.min.js")
_IMPORTING: Final = re.compile(
    r"// Try loading JS from CDN.*?throw 'Could not load JS libraries in worker\.';\s*\}\s*\}",
    re.DOTALL,
)
_SCRIPT: Final = re.compile(r"<script src=['\"]/static/([^'\"]+)['\"]></script>")
_STYLE: Final = re.compile(r"<link href=\"/static/([^\"]+)\" rel=\"stylesheet\">")
_RUNS: Final = re.compile(
    r"<script( id=\"hierarchy-worker\" type=\"javascript/worker\")?>(.*?)</script>", re.DOTALL
)
#: The worker is made from a text of the page, styles are set by scripts, and lodash makes functions
#: of snakeviz's own templates, which escape what they are given.
_MORE: Final = "style-src 'unsafe-inline'; worker-src blob:"


class NoTemplate(UsageError):
    """The installed snakeviz is not made as those that are known."""


def text(found: Stats, title: str) -> str:
    """The page as HTML.

    Args:
        found: the profile.
        title: what the page is called.

    Raises:
        NoTemplate: snakeviz's template has changed beyond recognition.
    """
    kept = _kept(found)
    rows, callees = inline.data(_table(kept)), inline.data(_callees(kept))
    made = Template(_template()).generate(
        profile_name=safe(title).replace("/", " ").replace(".", " "),
        table_rows=rows,
        callees=callees,
    )
    return _guarded(made.decode("utf-8"))


def _guarded(page: str) -> str:
    scripts = [match[2] for match in _RUNS.finditer(page) if not match[1]]
    policy = inline.policy(scripts, [], evaluates=True, more=_MORE)
    meta = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'
    return page.replace("<head>", f"<head>\n    {meta}", 1)


@cache
def _template() -> str:
    """Their template with all that it loads inside; tornado's own marks in those are escaped.

    Raises:
        NoTemplate: it is not as it was.
    """
    import snakeviz

    folder = Path(str(snakeviz.__file__)).parent
    page = (folder / "templates" / "viz.html").read_text("utf-8")
    libraries = "\n".join(_asset(folder, name) for name in _WORKER_LIBRARIES)
    page, imports = _IMPORTING.subn("", page)
    page, worker = re.subn(
        r"(type=\"javascript/worker\">)", lambda m: f"{m[1]}\n{libraries}\n", page
    )
    page, scripts = _SCRIPT.subn(lambda m: f"<script>{_asset(folder, m[1])}</script>", page)
    page, styles = _STYLE.subn(lambda m: f"<style>{_asset(folder, m[1])}</style>", page)
    if not (imports == worker == 1 and scripts >= 2 and styles and "/static/" not in page):
        raise NoTemplate(
            "the installed snakeviz has a template of another form",
            expected="that of snakeviz 2.2",
            do="pip install 'snakeviz==2.2.2'",
        )
    return page


def _asset(folder: Path, name: str) -> str:
    """A script or style that may stand in a template, and in a page."""
    content = (folder / "static" / name).read_text("utf-8")
    content = re.sub(r"url\([^)]*\)", "none", content) if name.endswith(".css") else content
    inert = content.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return _marks(inert)


def _marks(text: str) -> str:
    """Tornado takes `{{`, `{%` and `{#` for its own, unless a `!` follows."""
    return re.sub(r"\{([{%#])", r"{\1!", text)


# -- the profile, as snakeviz's own code would have made it from a file ---------------------------


def _kept(found: Stats) -> Stats:
    """The functions with most time, and of their callers those that are among them."""
    order = sorted(found, key=lambda f: (f != REGION, -found[f][3]))
    wanted = set(order[:MOST])
    return {
        f: (*found[f][:4], {c: n for c, n in found[f][4].items() if c in wanted}) for f in wanted
    }


def _name(function: Function) -> str:
    file, line, name = function
    return f"{safe(file, limit=_LIMIT)}:{line}({safe(name, limit=_LIMIT)})"


def _shown(function: Function) -> str:
    file, line, name = function
    return _name((file.rpartition("/")[2], line, name))


def _table(found: Stats) -> list[list[Any]]:
    """The rows of its table; the place is HTML there."""
    rows: list[list[Any]] = []
    for function, (primitive, calls, own, total, _) in found.items():
        many = str(calls) if primitive == calls else f"{calls}/{primitive}"
        each = [f"{own / calls:.4g}", f"{total / calls:.4g}"] if calls else ["0", "0"]
        place = html.escape(_shown(function))
        row = [f"{own:.4g}", each[0], f"{total:.4g}", each[1], place, _name(function)]
        rows.append([[many, calls], *row])
    return rows


def _callees(found: Stats) -> dict[str, Any]:
    """Each function with whom it called, and by whom it was called."""
    made: dict[str, dict[str, Any]] = {
        _name(function): {
            "stats": list(figures[:4]),
            "callers": {_name(by): list(took) for by, took in figures[4].items()},
            "children": {},
            "display_name": _shown(function),
        }
        for function, figures in found.items()
    }
    for function, figures in found.items():
        for by, took in figures[4].items():
            made[_name(by)]["children"][_name(function)] = list(took)
    return made


__all__ = ["NoTemplate", "text"]
