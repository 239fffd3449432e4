// Runs that raised: which boxes they are, how they are marked, and what is said of them.

const STRIPE = 6;  // pixels from one stripe to the next
const DARK = 0xff1b1b1b, LIGHT = 0xffffffff;  // both, for no layer's colour is far from either

// As columns/failed.py has them, as a row of boxes by the number of the row that they are in.
function failedRows({ failed, steps }) {
  const rows = new Map(), { row, words, said } = failed;
  const compute = steps.findIndex((step) => step.name === "compute");
  row.forEach((r, i) => {
    if (!rows.has(r)) rows.set(r, { n: 0, start: [], length: [], layer: [], run: [], step: [], said: [] });
    const one = rows.get(r);
    for (const name of ["start", "length", "layer", "run"]) one[name].push(failed[name][i]);
    one.step.push(compute);
    one.said.push(words[said[i]]);
    one.n += 1;
  });
  return rows;
}

// What the box of a row that begins then raised; "" if it did not, or is not known of.
function raisedIn(failed, r, start) {
  const row = failed.get(r), i = row ? row.start.indexOf(start) : -1;
  return i < 0 ? "" : row.said[i];
}

// Of each pixel of some rows whether something failed there: 1, or 2 where stripes have no room.
function failedPixels({ failed }, rows, chosen, [x0, x1], width) {
  let out = null;
  const scale = width / (x1 - x0);
  for (const row of rows.map((r) => failed.get(r)).filter(Boolean)) {
    for (let i = 0; i < row.n; i++) {
      const from = Math.floor((row.start[i] - x0) * scale);
      const to = Math.max(Math.ceil((row.start[i] + row.length[i] - x0) * scale), from + 2);
      if (to <= 0 || from >= width || !chosen(row, i)) continue;
      out ??= new Uint8Array(width);
      out.fill(to - from < STRIPE ? 2 : 1, Math.max(from, 0), to);
    }
  }
  return out;
}

// Stripes on a strip of pixels: slanting where they have room, else across.
function stripe(out, p, width, failed) {
  for (let x = 0; x < width; x++) {
    if (!failed[x]) continue;
    const phase = (failed[x] === 1 ? x + p : p) % STRIPE;
    if (phase < 2 || (failed[x] === 2 && phase < 3)) out[p * width + x] = DARK;
    else if (phase === 2 || failed[x] === 2) out[p * width + x] = LIGHT;
  }
}
