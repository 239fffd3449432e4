// A run that goes on: what the server tells every half second is added to the page. Boxes, rows and
// layers are numbered, so that nothing is lost or doubled: what is here already is passed over, and
// what is missing is asked for again.

const live = {
  // `heard` is how the page speaks to the server: {next: [box], lines: [n], layers: [n], page: [name]};
  // `folds` has the button that folds processes, and the rows above which it is pressed at first.
  take(drawing_, told, heard, folds) {
    const now = cells(told);
    if (!now.status) return;
    const status = JSON.parse(now.status);
    const { boxes } = drawing_, open = boxes.opened?.size || status.now.length;
    boxes.close();
    const grew = live.grow(drawing_, now, folds);
    live.open(drawing_, status);
    live.widen(drawing_, status);
    if (grew || open) soon(drawing_);
    live.say(status);
    // what is told ends with the run, but what was made goes on to age
    live.again = () => live.tell(drawing_, heard, status);
    live.aging ??= setInterval(() => { live.age(); live.again(); }, 1000);
    live.again();
    // once the run has ended, nothing more may be told here; another page may still be wanted
    window.onhashchange = () => setTimeout(live.again, 0);
    live.forget(drawing_, status.apps);
  },

  // Add what is new; whether anything was.
  grow(drawing_, now, folds) {
    const { boxes, selection } = drawing_, layers = selection.tables.layers;
    const names = JSON.parse(now.names);
    const added = rest(names.lines, names.lines_from, live.lines(drawing_));
    rest(names.layers, names.layers_from, layers.length).forEach((layer) => layers.push(layer));
    for (const line of added) live.add(drawing_, line);
    if (added.length || drawing_.next === undefined) live.order(drawing_, folds);
    drawing_.next ??= boxes.count;
    const skip = drawing_.next - now.first;
    if (skip < 0 || skip >= now.row.length) return added.length > 0;
    boxes.append(live.whole(now, skip, selection.tables));
    drawing_.next = now.first + now.row.length;
    return true;
  },

  // Columns of all boxes of a message but the first few, those that all tasks share filled in.
  whole(now, skip, tables) {
    const n = now.row.length - skip;
    const part = (name, Kind) => plain(now[name], Kind).subarray(skip);
    return {
      row: part("row", Uint32Array), start: part("start", Uint32Array),
      length: part("length", Uint32Array), layer: part("layer", Uint16Array),
      step: new Uint8Array(n).fill(tables.steps.findIndex((step) => step.name === "compute")),
      gil: new Uint8Array(n), run: new Int32Array(n).fill(-1),
    };
  },

  // Tasks that run, and of those that run for longest a list.
  open({ boxes, selection: { tables } }, { now, end }) {
    const all = now.map(([row, start, layer, key, age]) => ({ row, start, layer, key, age }));
    for (let r = boxes.rows.length; r < live.rows(all); r++) boxes.rows[r] = { n: 0 };
    boxes.open(all, end / boxes.unit, tables.steps.findIndex((step) => step.name === "compute"));
    for (const list of everywhere("[data-sp-live-now]")) {
      list.replaceChildren(...all.slice(0, 5).map(({ key, age }) => element("li", `${seconds(age)}  ${key}`)));
      list.parentNode.hidden = !all.length;
    }
  },

  rows(all) {
    return Math.max(0, ...all.map(({ row }) => row + 1));
  },

  lines(drawing_) {
    return drawing_.lines_[0].length;
  },

  // A new row: a line of its own, and part of its process's.
  add(drawing_, line) {
    const [all, folded] = drawing_.lines_;
    all.push(line);
    const mine = folded.find((other) => other.label === line.parent);
    if (mine) mine.rows.push(...line.rows);
    else folded.push({ ...line, label: line.parent, rows: [...line.rows] });
  },

  // By worker, then thread, in whatever order they were heard of: worker 2 above worker 10.
  // Many are folded as soon as they are so many, until somebody chooses.
  order(drawing_, folds) {
    for (const lines of drawing_.lines_) lines.sort((a, b) => NUMERIC.compare(a.label, b.label));
    if (folds && drawing_.folded === undefined) {
      drawing_.pressed = live.lines(drawing_) > folds.most;
      folds.button.active = drawing_.pressed;
    }
    drawing_.fold(drawing_.folded ?? drawing_.pressed ?? false);
  },

  // The button was pressed: by a reader, if not to what it was set to above.
  chosen(drawing_, active) {
    if (active !== (drawing_.folded ?? drawing_.pressed ?? false)) drawing_.folded = active;
    drawing_.fold(active);
  },

  // The time axis reaches farther than the run, so that it need not follow at every step.
  widen(drawing_, { end }) {
    const range = drawing_.figure.x_range;
    const shown = drawing_.reach ?? range.end;
    if (end <= shown) return;
    const reach = end * 1.25, follows = range.start <= 0 && Math.abs(range.end - shown) < 1e-6;
    drawing_.reach = reach;
    range.setv({ bounds: [-0.05 * reach, 1.05 * reach] }, { sync: false });
    if (follows || drawing_.next === undefined) range.setv({ start: 0, end: reach }, { sync: false });
  },

  // Facts where the page has places for them.
  say(status) {
    const { known, done, assigned } = status;
    const facts = {
      elapsed: seconds(status.elapsed), stage: STAGES[status.stage] ?? status.stage,
      tasks: known ? `${done.toLocaleString("en")} of ${known.toLocaleString("en")} tasks done` : "no task known yet",
      running: known && status.stage ? `${(assigned - done).toLocaleString("en")} with workers` : "",
      steps: status.steps.map(([who, step]) => `${who}: ${step}`).join(", "),
      state: STATES[status.state], trouble: status.trouble, said: status.said,
    };
    for (const place of everywhere("[data-sp-live]")) {
      const text = facts[place.dataset.spLive];
      if (text !== undefined && place.textContent !== text) place.textContent = text;
    }
    for (const bar of everywhere("[data-sp-live-bar]")) bar.style.width = `${known ? 100 * done / known : 0}%`;
    for (const swatch of everywhere("[data-sp-live-colour]")) swatch.className = `swatch sp-${status.stage || "outside"}`;
  },

  // How long ago the snapshots were taken that pages are made from.
  age() {
    for (const place of everywhere("[data-sp-age]")) {
      const age = Math.max(0, Math.round(Date.now() / 1000 - place.dataset.spAge));
      place.textContent = age < 60 ? `${age} s ago` : `${seconds(age)} ago`;
    }
  },

  // What the server cannot know: which page is looked at, and what is missing here.
  tell(drawing_, heard, status) {
    const wanted = document.querySelector("[data-sp-page][aria-current]")?.dataset.spPage ?? "";
    const data = {
      page: [wanted], next: [drawing_.next], lines: [live.lines(drawing_)],
      layers: [drawing_.selection.tables.layers.length],
    };
    const missing = status.sent > drawing_.next || status.lines > data.lines[0] || status.layers > data.layers[0];
    // what is being read is not made anew
    const view = document.querySelector(`[data-sp-view="${wanted}"]`);
    const hold = Boolean(view && everywhere("details[open]:not([data-sp-open])", view).length);
    if (!missing && heard.data.page[0] === wanted && (heard.data.hold?.[0] ?? false) === hold) return;
    heard.data = { ...data, missing: [missing], hold: [hold] };
  },

  // Pages of older snapshots are gone; so may be what was kept for them, but for what was chosen.
  forget({ selection }, names) {
    if (names.some((name) => !apps[name])) return;  // they are still on their way
    for (const name in apps) {
      if (apps[name].selection === selection || names.includes(name)) continue;
      names.forEach((now) => apps[now].selection.follow(apps[name].selection));
      delete apps[name];
    }
  },
};

const NUMERIC = new Intl.Collator("en", { numeric: true });

// Without a region nothing is the caller's own: between computations the cluster has nothing to do.
const STAGES = { "": "ended", outside: "idle" };

const STATES = {
  recording: "recording", stopping: "stopping …", stopped: "recording stopped",
  failed: "nothing more is recorded; save what was until then",
  gone: "the cluster has gone; what was recorded until then is here until the app ends: save it",
  lost: "the connection to the cluster was lost; what was recorded until then is here until the app ends: save it",
};

// The entries of a list that begins at `from` which come after the first `have`.
function rest(list, from, have) {
  return from <= have ? list.slice(have - from) : [];
}
