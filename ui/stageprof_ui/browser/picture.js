// The picture of some lines over a window of time: what fills each pixel, and how much of it.
// Exact at every zoom: every box adds the part of it that lies in a pixel.

const GROUPS = 32;
const MUTED = GROUPS - 1;  // what the selection leaves out is drawn in grey

// Busy share and dominant group (-1: nothing) of each pixel of one line.
function shares(boxes, rows, groupOf, chosen, window_, width) {
  const busy = new Float32Array(GROUPS * width);
  const [x0, x1] = window_;
  const scale = width / (x1 - x0);
  for (const r of rows) {
    const row = boxes.rows[r];
    if (!row) continue;
    for (let i = boxes.after(row, x0); i < row.n && row.start[i] < x1; i++) {
      const group = chosen(row, i) ? groupOf(row, i) : MUTED;
      add(busy, group * width, (row.start[i] - x0) * scale,
          (row.start[i] + row.length[i] - x0) * scale, width);
      if (group === WATCHED) turns(boxes, busy, row, i, window_, width);
    }
  }
  if (rows.some((r) => boxes.rows[r]?.holds)) settle(busy, width);
  return dominance(busy, width, Math.max(rows.length, 1));
}

function add(busy, base, from, to, width) {
  const a = Math.max(from, 0), b = Math.min(to, width);
  const first = Math.floor(a), last = Math.min(Math.floor(b), width - 1);
  if (first >= last) {
    busy[base + Math.min(first, width - 1)] += b - a;
    return;
  }
  busy[base + first] += first + 1 - a;
  for (let p = first + 1; p < last; p++) busy[base + p] += 1;
  busy[base + last] += b - last;
}

function dominance(busy, width, capacity) {
  const group = new Int16Array(width).fill(-1), share = new Float32Array(width);
  for (let p = 0; p < width; p++) {
    let most = 0, all = 0;
    for (let g = 0; g < MUTED; g++) {
      const value = busy[g * width + p];
      if (value <= 0) continue;
      all += value;
      if (value > most) [most, group[p]] = [value, g];
    }
    if (group[p] < 0 && busy[MUTED * width + p] > 0) {
      all = busy[MUTED * width + p];
      group[p] = MUTED;
    }
    share[p] = Math.min(1, all / capacity);
  }
  return { group, share };
}

// Something is always seen of a pixel in which anything ran, on a dark ground too.
const FAINTEST = 0.3;

// The rows of each strip of pixels, from below, and where in the picture it is; `tops` of lines are
// their heights from below in the units of [y0, y1]. Strips between lines are left out.
function* strips(lines, [y0, y1], height) {
  const perPixel = (y1 - y0) / height;
  let last = "", rows = [];
  for (let p = 0; p < height; p++) {
    const low = y0 + p * perPixel, high = low + perPixel;
    const [shown, gap] = linesAt(lines, low, high, perPixel);
    if (!shown.length || gap) continue;
    const name = shown.map((line) => line.index).join(" ");
    if (name !== last) rows = shown.flatMap((line) => line.rows);
    last = name;
    yield { p, rows };
  }
}

// Pixels of all lines.
function paint(view, { window: window_, y, width, height }) {
  const out = new Uint32Array(width * height);
  let last = null, row = null, failed = null;
  for (const { p, rows } of strips(view.lines, y, height)) {
    if (rows !== last) [row, failed] = [colours(view, rows, window_, width), view.failed(rows)];
    last = rows;
    out.set(row, p * width);
    if (failed) stripe(out, p, width, failed);
  }
  return out;
}

// The lines that a strip of pixels shows; between lines high enough to have one, a gap.
function linesAt(lines, low, high, perPixel) {
  const middle = (low + high) / 2;
  const found = [];
  for (let i = firstBelow(lines, high); i < lines.length && lines[i].top > low; i++) {
    found.push(lines[i]);
  }
  if (found.length && found[0].height > 4 * perPixel) {
    const line = found.find((l) => l.bottom <= middle && middle < l.top);
    if (!line) return [[], true];
    return [[line], line.top - middle < perPixel];
  }
  return [found, false];
}

// Lines are in order from the top: index of the first whose bottom is below `high`.
function firstBelow(lines, high) {
  let [low, end] = [0, lines.length];
  while (low < end) {
    const middle = (low + end) >> 1;
    if (lines[middle].bottom < high) end = middle;
    else low = middle + 1;
  }
  return low;
}

function colours(view, rows, window_, width) {
  const { group, share } = view.shares(rows);
  const out = new Uint32Array(width);
  for (let p = 0; p < width; p++) {
    if (group[p] < 0) continue;
    const muted = group[p] === MUTED;
    const alpha = (FAINTEST + (1 - FAINTEST) * share[p]) * (muted ? 0.25 : 1);
    const colour = muted ? 0x888888 : view.palette[group[p]];
    out[p] = (Math.round(alpha * 255) << 24) | colour;
  }
  if (rows.length === 1) edges(view, view.boxes.rows[rows[0]], window_, width, out);
  return out;
}

// A darker pixel where a box begins that is wide enough to be seen as one.
function edges(view, row, [x0, x1], width, out) {
  if (!row) return;
  const scale = width / (x1 - x0);
  const first = view.boxes.after(row, x0);
  for (let i = first; i < row.n && row.start[i] < x1; i++) {
    if (i - first > width) return;  // more boxes than pixels: none is wide
    const p = Math.floor((row.start[i] - x0) * scale);
    if (p < 0 || p >= width || row.length[i] * scale < 4) continue;
    const pixel = out[p];
    const darker = (shift) => Math.round(((pixel >> shift) & 255) * 0.6) << shift;
    out[p] = (pixel & 0xff000000) | darker(16) | darker(8) | darker(0);
  }
}
