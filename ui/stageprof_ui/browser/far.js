// A drawing of boxes that are too many to be sent: the server tells what a window shows of them.
// The picture before moves with the axes until the new one is here.

const LOST_MS = 30_000;

class Far extends Drawing {
  constructor(given) {
    super(given);
    this.asked = given.asked;
    this.held = null;           // what of the boxes is here: {boxes, window, rows}
    this.flying = null;         // one question is under way at a time,
    this.waiting_ = new Map();  // and of those that wait the newest of each kind is kept
    this.number = 0;
  }

  draw() {
    const frame = this.frame;
    if (!frame) return;
    this.label();
    const lines = distinct(strips(this.lines, frame.y, frame.height));
    if (this.has(frame, lines)) {
      this.boxes = this.held.boxes;
      super.draw();
      return;
    }
    const question = { ...this.question("picture", frame.window, lines), width: frame.width };
    this.ask("picture", question, (told) => this.show(told, frame, lines));
  }

  // Whether the boxes of some lines in a frame are here.
  has({ window: [x0, x1] }, lines) {
    if (!this.held) return false;
    const [from, to] = this.held.window;
    return from <= x0 && x1 <= to && lines.every((rows) => rows.every((r) => this.held.rows.has(r)));
  }

  question(kind, window_, lines) {
    const { mode, stage, layers, runs } = this.selection;
    return {
      kind, window: window_, lines, mode: this.mode || mode, stage,
      layers: layers && [...layers], none: runs !== null,
    };
  }

  show(told, frame, lines) {
    if (told.kind === "boxes") {
      const window_ = [told.from, told.to];
      this.held = { boxes: this.boxes = boxesOf(told), window: window_, rows: new Set(lines.flat()) };
      super.draw();
    } else if (told.kind === "picture") {
      const of = new Map(lines.map((rows, i) => [rows.join(" "), part(told, i, frame.width)]));
      this.boxes = this.boxes.emptied();
      this.put(frame, (rows) => of.get(rows.join(" ")) ?? nothing(frame.width));
    }
  }

  // Ask when the question under way is answered, unless there is a newer one of its kind by then.
  ask(kind, question, then) {
    this.waiting_.set(kind, { question, then });
    this.next();
  }

  next() {
    // An answer that was lost (a connection that was made anew) is not waited for for ever.
    if (!this.waiting_.size || (this.flying && performance.now() - this.flying.at < LOST_MS)) return;
    const [kind, wanted] = this.waiting_.entries().next().value;
    this.waiting_.delete(kind);
    this.flying = { ...wanted, number: ++this.number, at: performance.now() };
    this.asked.data = { question: [JSON.stringify(wanted.question)], number: [this.number] };
  }

  answer(source) {
    const told = cells(source), { flying } = this;
    if (told.number !== flying?.number) return;
    this.flying = null;
    flying.then(told);
    if (this.waiting_.delete("picture")) this.draw();  // perhaps what it needs is here now
    this.next();
  }

  // The box at a point, which the server knows with its key.
  find(kind, event, then) {
    const line = this.inside(event) && this.lineAt(event.y);
    if (!line) return then(null);
    const [t, slack] = this.around(event.x);
    this.ask(kind, this.question("point", [t - slack, t + slack], [line.rows]), (told) => {
      if (told.kind !== "box") return then(null);
      const row = boxesOf(told).rows[told.row];
      then({ line, r: told.row, row: { ...row, key: told.key }, index: 0, story: told });
    });
  }

  hover(event) {
    this.pointed = event;
    this.find("hover", event, (found) => {
      if (this.pointed === event) tip(found && this.describe(found), event, this.figure);
    });
  }

  leave() {
    this.pointed = null;
    super.leave();
  }

  tap(event) {
    this.find("tap", event, (found) => { this.panel.text = told(this, found); });
  }

  rectangle({ geometry: { type, x0, x1, y0, y1 }, final }) {
    if (!final || type !== "rect") return;
    const unit = this.boxes.unit;
    const { what, lines } = this.counted({ y0, y1 });
    const question = this.question("sums", [x0 / unit, x1 / unit], lines.map(({ rows }) => rows));
    this.ask("sums", { ...question, busy: what === "busy" }, (found) => {
      if (found.sums === undefined) {
        this.panel.text = element("p", "The server could not sum that up.", "sp-story").outerHTML;
        return;
      }
      const { count, busy, by } = JSON.parse(found.sums);
      const named = by.map(([name, n, units]) => [name, [n, units * unit]]);
      this.panel.text = sums({ count, busy: busy * unit, what, by: named });
    });
  }
}

// Of strips of pixels the different lists of rows.
function distinct(all) {
  const found = new Map();
  for (const { rows } of all) found.set(rows.join(" "), rows);
  return [...found.values()];
}

// Boxes whose columns come as they do in a source, but each cell by its name.
function boxesOf(told) {
  return new Boxes(Object.fromEntries(Object.entries(told).map(([name, cell]) => [name, [cell]])));
}

const NONE_HERE = 255, WHOLE = 65535;

// What a line's pixels show, from those of all lines.
function part({ group, share }, i, width) {
  const of = (array, Kind) => plain(array, Kind).subarray(i * width, (i + 1) * width);
  return {
    group: Int16Array.from(of(group, Uint8Array), (g) => (g === NONE_HERE ? -1 : g)),
    share: Float32Array.from(of(share, Uint16Array), (s) => s / WHOLE),
  };
}

function nothing(width) {
  return { group: new Int16Array(width).fill(-1), share: new Float32Array(width) };
}
