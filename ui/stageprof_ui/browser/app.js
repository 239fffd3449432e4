// The one object that the page's callbacks speak to: a selection and drawings for each app shown.

const apps = {};

// An app by its name: several may be on one page of a notebook.
function app(name, tables) {
  if (!apps[name]) {
    // of a run that goes on: what was chosen in the snapshot before stays chosen
    const before = apps.live && name !== "live" && Object.values(apps).filter((a) => a.name !== "live").pop();
    const selection = new Selection(prepared(tables()));
    apps[name] = { name, selection, drawings: {}, boxes: {}, tables: selection.tables };
    if (before) selection.follow(before.selection);
  }
  return apps[name];
}

// The tables of an app, and the keys of its tasks.
function tabled(tables, stories) {
  return { ...JSON.parse(tables.data.tables[0]), keys: lines_of(stories.data.keys[0]) };
}

// The lines of a text that came as bytes; null if there are none.
function lines_of(bytes) {
  const text = new TextDecoder().decode(plain(bytes, Uint8Array));
  return text ? text.split("\n") : null;
}

function prepared(tables) {
  const palettes = {};
  for (const mode in tables.palettes) palettes[mode] = tables.palettes[mode].map(bgr);
  return { ...tables, palettes };
}

// "#rrggbb" as the number 0xbbggrr, as canvas pixels have it in memory.
function bgr(colour) {
  const rgb = parseInt(colour.slice(1), 16);
  return ((rgb & 255) << 16) | (rgb & 0xff00) | (rgb >> 16);
}

// The drawing of a figure; made when it is first asked for.
function drawing(name, { figure, image, source, tables, stories, lines, told: panel, asked }) {
  const mine = app(name, () => tabled(tables, stories));
  const boxes = (mine.boxes[source.id] ??= new Boxes(source.data));
  return (mine.drawings[figure.id] ??= new (asked ? Far : Drawing)({
    figure, asked, image, boxes, selection: mine.selection, stories: cells(stories.data),
    lines: lines.data.lines.map((text) => JSON.parse(text)), mode: lines.data.mode[0], told: panel,
  }));
}

// Draw once for all that changed before the next frame.
const waiting = new Set();
function soon(drawing_) {
  if (!waiting.size) {
    requestAnimationFrame(() => {
      const all = [...waiting];
      waiting.clear();
      all.forEach((d) => d.draw());
    });
  }
  waiting.add(drawing_);
}

return { app, apps, tabled, drawing, soon, Boxes, Selection, Drawing, shares, paint, seconds, size, element,
         listing, tip, live, page, paper, curves, icicle };
