// A Bokeh figure that shows boxes: draws them, names the one under the pointer, tells of a click.

class Drawing {
  constructor({ figure, image, boxes, selection, stories, lines, mode, told: panel }) {
    Object.assign(this, { figure, image, boxes, selection, stories, mode, panel });
    this.lines_ = lines;
    this.arrange(lines[0]);
    figure.height = fitting(figure.height);
    selection.listeners.add(() => soon(this));
  }

  // Put lines below each other, the first at the top; `total` is their height.
  arrange(lines) {
    const total = lines.reduce((sum, line) => sum + line.height, 0);
    let top = total;
    this.lines = lines.map((line, index) => {
      const placed = { ...line, index, top, bottom: top - line.height };
      top -= line.height;
      return placed;
    });
    this.total = total;
  }

  // One line for each process, or one for each of its threads.
  fold(folded) {
    this.arrange(this.lines_[folded ? 1 : 0]);
    this.figure.y_range.setv({ start: 0, end: Math.max(this.total, 0.01) });
    this.figure.height = fitting(Math.min(900, Math.round(this.total * 22) + 90));
    soon(this);
  }

  get window() {
    const { start, end } = this.figure.x_range;
    return [start / this.boxes.unit, end / this.boxes.unit];
  }

  // What of the boxes is to be seen, and on how many pixels; null before there is a place for it.
  get frame() {
    const { inner_width: width, inner_height: height, y_range: y } = this.figure;
    const [x0, x1] = this.window;
    if (!(width > 0 && height > 0 && x1 > x0)) return null;
    return { window: [x0, x1], y: [y.start, y.end], width, height };
  }

  draw() {
    const frame = this.frame;
    if (!frame) return;
    const groupOf = this.selection.grouping(this.mode), chosen = this.selection.filter();
    this.put(frame, (rows) => shares(this.boxes, rows, groupOf, chosen, frame.window, frame.width));
  }

  // Put the picture of a frame in its place, by the shares of each line's rows.
  put(frame, of) {
    const began = performance.now(), { width, height, y } = frame, chosen = this.selection.filter();
    const view = {
      boxes: this.boxes, lines: this.lines, shares: of, palette: this.selection.palette(this.mode),
      failed: (rows) => failedPixels(this.selection, rows, chosen, frame.window, width),
    };
    const pixels = paint(view, frame);
    const [start, end] = frame.window.map((t) => t * this.boxes.unit);
    this.image.data = {
      image: [ndarray(pixels, [height, width])], x: [start], y: [y[0]],
      dw: [end - start], dh: [y[1] - y[0]],
    };
    this.label();
    this.drawn = { width, height, ms: performance.now() - began };
    document.documentElement.dataset.stageprofDrawn = String(++drawings);
    window.stageprof.lastDrawn = performance.now();
    window.stageprof.firstDrawn ??= window.stageprof.lastDrawn;
  }

  // Names of lines where there is room for them.
  label() {
    const { y_range: y, inner_height: height } = this.figure;
    const axis = this.figure.left[0];
    const perPixel = (y.end - y.start) / height;
    const ticks = [], names = new Map();
    let free = Infinity;
    for (const line of this.lines) {
      const middle = (line.top + line.bottom) / 2;
      if (!line.label || middle > y.end || middle < y.start || free - middle < 13 * perPixel) continue;
      ticks.push(middle);
      const label = line.label.replace(/(\$\$|\\[([])/g, (tex) => tex[0] + "\u2060" + tex[1]);  // Bokeh would set it as TeX
      names.set(middle, ending(label, 34));
      free = middle;
    }
    axis.ticker.ticks = ticks;
    axis.major_label_overrides = names;
  }

  lineAt(y) {
    return this.lines.find((l) => l.bottom <= y && y < l.top);
  }

  // An instant, and how far from it something may be that is meant.
  around(x) {
    const [x0, x1] = this.window;
    return [x / this.boxes.unit, 2 * (x1 - x0) / this.figure.inner_width];
  }

  // The line and the box at a point of the figure: {line, row, index}; index -1 between boxes.
  under(x, y) {
    const line = this.lineAt(y);
    if (!line) return null;
    const [t, slack] = this.around(x);
    let found = { line, row: null, index: -1 }, nearest = Infinity;
    for (const r of line.rows) {
      const row = this.boxes.rows[r];
      const index = row ? this.boxes.at(row, t, slack) : -1;
      if (index < 0) continue;
      const off = Math.max(row.start[index] - t, t - row.start[index] - row.length[index], 0);
      if (off < nearest) [found, nearest] = [{ line, r, row, index }, off];
    }
    return found;
  }

  // What a box is, as pairs of name and value.
  describe({ line, r, row, index }) {
    if (index < 0) return [["", line.label]];
    const { steps, layers } = this.selection.tables;
    const step = steps[row.step[index]], layer = layers[row.layer[index]];
    const unit = this.boxes.unit;
    const out = [["", layer && layer.name ? layer.name : `${step.stage} ${step.name}`]];
    const open = row.run[index] === RUNNING ? this.boxes.opened.get(r) : null;
    const key = open?.key ?? row.key ?? this.selection.keyOf(row.run[index]);
    if (key) out.push(["task", key]);
    if (layer && layer.line) out.push(["line", layer.line]);
    if (layer && layer.name) out.push(["step", `${step.stage} ${step.name}`]);
    const raised = raisedIn(this.selection.failed, r, row.start[index]);
    if (raised) out.push(["raised", raised]);
    if (row.holds || row.gil[index]) out.push(["GIL", gilOf(this.boxes, row, index)]);
    if (open) out.push(["with its worker for", seconds(open.age)], ["thread", "not known until it ends"]);
    else out.push(["takes", seconds(row.length[index] * unit)]);
    out.push(["from", seconds(row.start[index] * unit)]);
    out.push(["on", line.label]);
    return out;
  }

  hover(event) {
    const found = this.inside(event) ? this.under(event.x, event.y) : null;
    tip(found && found.index >= 0 ? this.describe(found) : null, event, this.figure);
  }

  // Back to the whole run, with nothing selected.
  everything() {
    this.selection.clear();
    this.selection.change({});
    const { x_range, y_range } = this.figure;
    x_range.setv({ start: 0, end: x_range.bounds[1] / 1.05 });
    y_range.setv({ start: 0, end: Math.max(this.total, 0.01) });
    this.panel.text = "";
  }

  // What dragging is from now on: one of the figure's tools.
  drag(tool) {
    this.figure.toolbar.active_drag = tool;
  }

  leave() {
    tip(null);
  }

  // Tell of the task that was clicked.
  tap(event) {
    this.panel.text = told(this, this.inside(event) ? this.under(event.x, event.y) : null);
  }

  // Sum up what is in a rectangle.
  rectangle({ geometry, final }) {
    if (final && geometry.type === "rect") this.panel.text = sums(this.totals(geometry));
  }

  inside({ x, y }) {
    const { x_range: a, y_range: b } = this.figure;
    return a.start <= x && x <= a.end && b.start <= y && y <= b.end;
  }

  // Of the lines in a rectangle those of one kind, busy ones if there are any, and what it is.
  counted({ y0, y1 }) {
    const within = this.lines.filter((line) => line.bottom < y1 && line.top > y0);
    const what = within.some((line) => line.what === "busy") ? "busy" : within[0]?.what ?? "busy";
    return { what, lines: within.filter((line) => line.what === what) };
  }

  // Sums of the boxes in a rectangle: how many, seconds, and by group.
  totals(geometry) {
    const unit = this.boxes.unit, [a, b] = [geometry.x0 / unit, geometry.x1 / unit];
    const { what, lines } = this.counted(geometry), chosen = this.selection.filter();
    const idle = this.selection.tables.steps.map(({ name }) => what === "busy" && IDLE.has(name));
    let count = 0, busy = 0;
    const by = new Map();
    for (const line of lines) {
      for (const r of line.rows) {
        const row = this.boxes.rows[r];
        for (let i = row ? this.boxes.after(row, a) : 0; row && i < row.n && row.start[i] < b; i++) {
          if (idle[row.step[i]] || !chosen(row, i)) continue;
          const part = Math.min(row.start[i] + row.length[i], b) - Math.max(row.start[i], a);
          const name = this.selection.nameOf(row, i);
          const sum = by.get(name) || [0, 0];
          by.set(name, [sum[0] + 1, sum[1] + part * unit]);
          count += 1;
          busy += part * unit;
        }
      }
    }
    return { count, busy, what, by: [...by].sort((p, q) => q[1][1] - p[1][1]) };
  }
}

// The last characters of a name: rows differ in what they end with, as workers do.
function ending(name, most) {
  const all = [...name];
  return all.length > most ? `…${all.slice(1 - most).join("")}` : name;
}

// A finger on a picture moves the picture: beside it there must be room to scroll the page.
function fitting(height) {
  if (!matchMedia("(pointer: coarse)").matches) return height;
  return Math.min(height, Math.max(240, Math.round(window.innerHeight * 0.6)));
}

// Steps in which nobody is busy, as far.py has them.
const IDLE = new Set(["", "idle", "wait.thread", "wait.resource"]);

let drawings = 0;

function ndarray(pixels, shape) {
  // Bokeh takes a typed array with a shape for an image.
  const array = pixels;
  array.shape = shape;
  array.dtype = "uint32";
  array.dimension = 2;
  return array;
}
