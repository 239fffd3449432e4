// A flame graph that hangs from the top, as boxes in a Bokeh figure: names, zoom, search.

const NAMED = "#111111";  // names on the colours of boxes
const WIDE = 7.3;  // pixels of a letter of its names, at 12 px monospace

const icicle = {
  // Write the names of boxes that have room for some of them.
  label(figure, source, names) {
    const { start, end } = figure.x_range;
    const perUnit = figure.inner_width / (end - start);
    if (!(perUnit > 0)) return;
    const { left, right, bottom, name } = source.data;
    const x = [], y = [], text = [], colour = [];
    // Where a box is faint its name is on the page's own ground.
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--sp-ink").trim() || NAMED;
    for (let i = 0; i < left.length; i++) {
      const from = Math.max(left[i], start), to = Math.min(right[i], end);
      const room = Math.floor(((to - from) * perUnit - 8) / WIDE);
      if (room < 3) continue;
      x.push(from + 4 / perUnit);
      y.push(bottom[i] + 0.5);
      colour.push(source.data.alpha[i] < 1 ? ink : NAMED);
      text.push(name[i].length > room ? `${name[i].slice(0, room - 1)}…` : name[i]);
    }
    names.data = { x, y, text, colour };
  },

  at(source, { x, y }) {
    const { left, right, bottom, top } = source.data;
    return left.findIndex((a, i) => a <= x && x < right[i] && bottom[i] <= y && y < top[i]);
  },

  // What a box is, beside the pointer.
  hover(figure, source, event) {
    const i = icicle.at(source, event);
    if (i < 0) return tip(null);
    const { path, left, right, looks, kind } = source.data;
    const total = Math.max(...right);
    const took = right[i] - left[i];
    const pairs = path[i].map((part) => ["", part]);
    pairs.push(["seen for", `${seconds(took)}, ${Math.round(100 * took / total)} % of all`], ["looks", String(looks[i])]);
    if (kind[i]) pairs.push(["mostly", kind[i]]);
    return tip(pairs, event, figure);
  },

  leave() {
    tip(null);
  },

  // A click shows a box as wide as the figure; one beside all boxes shows everything.
  zoom(figure, source, event) {
    const i = icicle.at(source, event);
    if (i < 0) return icicle.whole(figure, source);
    return figure.x_range.setv({ start: source.data.left[i], end: source.data.right[i] });
  },

  whole(figure, source) {
    figure.x_range.setv({ start: 0, end: Math.max(1e-9, ...source.data.right) });
  },

  // Boxes whose name holds a text are strong, all others faint; how much they are is told.
  search(source, wanted, told) {
    const text = wanted.trim().toLowerCase();
    const { name, left, right, bottom } = source.data;
    const found = name.map((one) => !text || one.toLowerCase().includes(text));
    source.data = { ...source.data, alpha: found.map((yes) => (yes ? 1 : 0.2)) };
    if (!text) {
      told.text = "";
      return;
    }
    const inOrder = [...name.keys()].filter((i) => found[i]).sort((i, j) => bottom[j] - bottom[i]);
    const outer = [];
    for (const i of inOrder) {
      if (!outer.some((o) => left[o] <= left[i] && right[i] <= right[o])) outer.push(i);
    }
    const sum = outer.reduce((all, i) => all + right[i] - left[i], 0);
    told.text = `${inOrder.length} ${inOrder.length === 1 ? "box" : "boxes"}: ${seconds(sum)} of ${seconds(Math.max(0, ...right))}`;
  },

  // The boxes of another role, searched as those before were.
  choose(figure, source, all, role, told, find) {
    const at = all.data.role.indexOf(role);
    const none = Object.fromEntries(Object.keys(source.data).map((column) => [column, []]));
    source.data = at < 0 ? none : JSON.parse(all.data.boxes[at]);
    figure.visible = at >= 0;
    icicle.whole(figure, source);
    icicle.search(source, find.value_input ?? "", told);
    if (at < 0) told.text = "No task was looked at there.";
  },
};
