// A task's own story through the stages, and the sums of a selected rectangle.

// Columns of stories by run: ready-made differences in units, so that they pack well.
function storyOf({ boxes, selection }, stories, i) {
  if (!(i < stories.sent.length)) return null;
  const unit = boxes.unit;
  const at = (name) => exact(stories[name][i]) * unit;
  const graph = selection.tables.graphs[stories.graph[i]];
  const before = graph ? graph.before.map(([stage, s]) => [stage, s, `its whole graph, ${graph.line || "line unknown"}`]) : [];
  return [...before, ...KNOWN[stories.known[i]](at)];
}

const NOT_KNOWN = "with its worker; what it waited for there is not known";

// By what is known of a run (see story.py): all; how long its function took, of a worker that tells nothing;
// that a worker had it; when a thread of a local scheduler took it.
const KNOWN = [
  (at) => [
    ["communication", at("sent"), "the scheduler's message to the worker"],
    ["communication", at("fetched"), "its inputs on their way to the worker"],
    ["execution", at("waited"), "ready, but every thread was busy"],
    ...its(at),
  ],
  (at) => [["execution", at("waited"), NOT_KNOWN], ...its(at)],
  (at) => [["execution", at("ran"), NOT_KNOWN]],
  (at) => [["execution", at("waited"), "until a thread of the pool took it"], ...its(at)],
];

function its(at) {
  return [
    ["execution", at("ran"), computed(at("cpu"), at("ran"))],
    ["scheduling", at("told"), "until the scheduler knew that it had ended"],
  ];
}

function computed(cpu, whole) {
  return cpu > 0 && whole > 0 ? `its function; CPU ${seconds(Math.min(cpu, whole))}` : "its function";
}

function storyTable(rows) {
  const table = element("table", "", "sp-table"), most = Math.max(...rows.map((row) => row[1]), 1e-12);
  for (const [stage, value, what] of rows) {
    const line = element("tr"), bar = element("td", "", "sp-track"), fill = element("div", "", `sp-bar sp-${stage}`);
    fill.style.width = `${100 * value / most}%`;
    bar.append(fill);
    line.append(element("td", stage, "sp-word"), bar, element("td", seconds(value), "sp-number"), element("td", what));
    table.append(line);
  }
  return table;
}

// What a click tells of a box; "" if it is none.
function told(drawing_, found) {
  if (!found || found.index < 0) return "";
  const run = found.row.run[found.index];
  const section = element("section", "", "sp-story"), own = found.story;  // of a task that is not here
  section.append(listing(drawing_.describe(found)));
  const rows = run >= 0 ? storyOf(drawing_, own ?? drawing_.stories, own ? 0 : run) : null;
  if (rows) section.append(storyTable(rows));
  const needs = own?.needed ?? (run >= 0 ? needsOf(drawing_, run) : []), count = needs.length + (own?.more ?? 0);
  if (count) section.append(element("p", `needs ${count} result${count > 1 ? "s" : ""}: ${needs.slice(0, 8).join(", ")}${count > 8 ? ", …" : ""}`));
  return section.outerHTML;
}

// Keys of the tasks whose results a run needed, as far as they were recorded.
function needsOf({ stories, selection }, run) {
  if (!(run + 1 < stories.need_from.length)) return [];
  const [from, need] = [stories.from ??= summed(stories.need_from), stories.on ??= summed(stories.need)];
  return Array.from(need.slice(from[run], from[run + 1]), (on) => selection.keyOf(on) || `task ${on}`);
}

function sums({ count, busy, what, by }) {
  if (!count) return element("p", "Nothing is in that rectangle.", "sp-story").outerHTML;
  const section = element("section", "", "sp-story"), table = element("table", "", "sp-table");
  section.append(element("p", `${count.toLocaleString("en")} boxes, ${seconds(busy)} ${what}`, "sp-heading"));
  for (const [name, [n, s]] of by.slice(0, 8)) {
    const line = element("tr");
    line.append(element("td", name), element("td", n.toLocaleString("en"), "sp-number"), element("td", seconds(s), "sp-number"));
    table.append(line);
  }
  section.append(table);
  return section.outerHTML;
}
