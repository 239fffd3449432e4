// What threads had of the GIL in each pixel: the parts of tasks in which they held it or waited.

// Groups of a pixel that are no colours: time of tasks of watched threads; what of it they held the
// GIL, waited, and nobody looked, in the order of columns/holds.py.
const WATCHED = MUTED - 1;
const TURNS = [MUTED - 2, MUTED - 3, MUTED - 4];
const UNSEEN = 2;
// Colours in palette.py: of what is not known, and of what needs the GIL less than that.
const UNKNOWN = 0, HARDLY = 6;
const LITTLE = 0.2;

// Add what a box's thread had of the GIL meanwhile.
function turns(boxes, busy, row, i, [x0, x1], width) {
  const scale = width / (x1 - x0);
  each(boxes, row, i, (from, to, what) => {
    const a = (from - x0) * scale, b = (to - x0) * scale;
    if (b > 0 && a < width) add(busy, TURNS[what] * width, a, b, width);
  });
}

// Tell of every interval within a box: from, to, and what it was.
function each(boxes, { holds, start, length }, i, tell) {
  const begin = start[i], end = begin + length[i];
  for (let h = boxes.after(holds, begin); h < holds.n && holds.start[h] < end; h++) {
    const to = holds.start[h] + holds.length[h];
    tell(Math.max(holds.start[h], begin), Math.min(to, end), holds.what[h]);
  }
}

// Give the tasks' time in each pixel the colour of the part of it that was waiting.
function settle(busy, width) {
  for (let p = 0; p < width; p++) {
    const [all, held, waited, unseen] = [WATCHED, ...TURNS].map((g) => busy[g * width + p]);
    for (const g of [WATCHED, ...TURNS]) busy[g * width + p] = 0;
    const seen = all - unseen;
    busy[UNKNOWN * width + p] += Math.min(unseen, all);
    if (seen > 1e-6) busy[colourOf(waited / seen, held / seen) * width + p] += seen;
  }
}

function colourOf(waited, held) {
  if (waited >= LITTLE) return 1 + Math.min(4, Math.floor(5 * waited + 1e-6));
  return waited + held < LITTLE ? HARDLY : 1;
}

// What a box's thread had of the GIL, in words.
function gilOf(boxes, row, i) {
  if (!row.holds) return `waited about ${(row.gil[i] - 1) * 10} %`;
  const sums = [0, 0, 0];
  each(boxes, row, i, (from, to, what) => { sums[what] += to - from; });
  const seen = row.length[i] - sums[UNSEEN];
  if (seen <= 0) return "not watched then";
  const [held, waited] = sums.map((sum) => `${Math.round(100 * sum / seen)} %`);
  return `waited ${waited}, held it ${held}`;
}
