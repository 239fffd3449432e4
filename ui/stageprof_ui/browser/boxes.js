// Boxes in rows over time, as columns/boxes.py packs them; rows can grow while a run goes on.

const COLUMNS = { start: Uint32Array, length: Uint32Array, step: Uint8Array, layer: Uint16Array,
                  gil: Uint8Array, run: Int32Array };

// What a source of one row holds, each cell by its name.
function cells(source) {
  return Object.fromEntries(Object.entries(source).map(([name, column]) => [name, column[0]]));
}

// Bokeh's arrays are a class of their own, whose parts would be copies of its beginning.
function plain(array, Kind) {
  return new Kind(array.buffer, array.byteOffset, array.length);
}

// What columns/packing.py sent as steps, and as rough logarithms.
function summed(steps) {
  const out = new Uint32Array(steps.length);
  let sum = 0;
  for (let i = 0; i < out.length; i++) out[i] = sum = (sum + steps[i]) >>> 0;
  return out;
}

function exact(rough) {
  return 2 ** (rough / 200) - 1;
}

// In place of the number of a run that has not ended.
const RUNNING = -2;

class Boxes {
  constructor(source) {
    const data = cells(source);
    for (const name of ["start", "run"]) data[name] = summed(data[name]);
    this.unit = data.unit_ns / 1e9;
    this.rows = [];
    for (let r = 0; r + 1 < data.offsets.length; r++) {
      const [a, b] = [data.offsets[r], data.offsets[r + 1]];
      const row = { n: b - a };
      for (const name in COLUMNS) row[name] = plain(data[name], COLUMNS[name]).subarray(a, b);
      this.rows.push(row);
    }
    this.first = Array.from(data.offsets);
    if (data.hold_offsets) this.hold(data);
  }

  // When the threads of rows held the GIL or waited for it, as columns/holds.py packs them.
  hold({ hold_start, hold_length, hold_what, hold_offsets: offsets, hold_known: known }) {
    const start = summed(hold_start), length = plain(hold_length, Uint32Array), what = plain(hold_what, Uint8Array);
    this.rows.forEach((row, r) => {
      if (!known[r]) return;
      const part = (array) => array.subarray(offsets[r], offsets[r + 1]);
      row.holds = { n: offsets[r + 1] - offsets[r], start: part(start), length: part(length), what: part(what) };
    });
  }

  // The same rows without a box.
  emptied() {
    const none = Object.create(Boxes.prototype);
    const rows = this.rows.map(() => ({ n: 0, start: [], length: [] }));
    return Object.assign(none, { unit: this.unit, first: [], rows });
  }

  get count() {
    return this.rows.reduce((sum, row) => sum + row.n, 0);
  }

  // Index of the first box of a row that ends after t (in units).
  after(row, t) {
    let [low, high] = [0, row.n];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row.start[middle] + row.length[middle] > t) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  // Index of the box of a row that covers t, or the nearest within `slack` units; -1 if none.
  at(row, t, slack) {
    const i = this.after(row, t);
    const distance = (j) => j < 0 || j >= row.n ? Infinity
      : Math.max(row.start[j] - t, t - row.start[j] - row.length[j], 0);
    const best = distance(i) <= distance(i - 1) ? i : i - 1;
    return distance(best) <= slack ? best : -1;
  }

  // Boxes of what has not ended, at the ends of rows, until the next are told: {row, start, layer, key}.
  open(now, end, step) {
    const part = now.filter(({ row }) => this.rows[row] !== undefined);
    this.append({
      row: part.map((one) => one.row), start: part.map((one) => one.start),
      length: part.map((one) => Math.max(end - one.start, 0)), layer: part.map((one) => one.layer),
      step: part.map(() => step), gil: part.map(() => 0), run: part.map(() => RUNNING),
    });
    this.opened = new Map(part.map((one) => [one.row, one]));
  }

  close() {
    for (const row of this.opened?.keys() ?? []) this.rows[row].n -= 1;
    this.opened = new Map();
  }

  // Add boxes at the ends of rows: {row: Uint32Array, and the columns}, in order within a row.
  append(delta) {
    for (let i = 0; i < delta.row.length; i++) {
      const row = (this.rows[delta.row[i]] ??= { n: 0 });
      for (const name in COLUMNS) {
        row[name] = grown(row[name], row.n, COLUMNS[name]);
        row[name][row.n] = delta[name][i];
      }
      row.n += 1;
    }
  }
}

function grown(array, n, Kind) {
  if (array && n < array.length && array.byteLength === array.buffer.byteLength) return array;
  if (array && n < array.length) return array.slice();  // a view of what was sent: never write there
  const bigger = new Kind(Math.max(64, 2 * n));
  if (array) bigger.set(array.subarray(0, n));
  return bigger;
}
