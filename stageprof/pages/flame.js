// A flame graph that hangs from the top, on a canvas: boxes, names, zoom, search. Names are drawn, never parsed.

const boxes = JSON.parse(document.getElementById("data").textContent);
const { parent, depth, left, seconds: took, own, looks, shares, name, file, line, kind, texts } = boxes;
const ROW = 20, LETTER = 7.05;
const STAGE = 0, PREFIX = 1, USER = 2;
const canvas = document.getElementById("graph"), find = document.getElementById("find");
const whole = document.getElementById("whole"), told = document.getElementById("told");
const count = left.length;
const end = left.reduce((most, x, i) => Math.max(most, x + took[i]), 1);
let view = [0, end], zoomed = -1, chosen = -1, found = null;

function colour(i) {
  if (kind[i] === STAGE) return boxes.stages[texts[name[i]]] ?? "#bdbdbd";
  if (kind[i] === PREFIX) return "#d2d2d2";
  const most = shares[i].indexOf(Math.max(...shares[i]));
  return boxes.colours[most];
}

function around(i) {
  const path = [];
  for (; i >= 0; i = parent[i]) path.push(i);
  return path.reverse();
}

function draw() {
  const width = canvas.clientWidth, sharp = window.devicePixelRatio || 1;
  const scale = width / (view[1] - view[0]), shown = [];
  for (let i = 0; i < count; i++) {
    const from = Math.max(0, (left[i] - view[0]) * scale), to = Math.min(width, (left[i] + took[i] - view[0]) * scale);
    if (to - from >= 0.4) shown.push([i, from, to - from]);
  }
  const rows = shown.reduce((most, [i]) => Math.max(most, depth[i] + 1), 1);
  canvas.style.height = `${rows * ROW}px`;
  canvas.width = width * sharp;
  canvas.height = rows * ROW * sharp;
  const pen = canvas.getContext("2d");
  pen.scale(sharp, sharp);
  pen.textBaseline = "middle";
  for (const box of shown) drawBox(pen, ...box);
  document.documentElement.dataset.stageprofDrawn = String(1 + Number(document.documentElement.dataset.stageprofDrawn || 0));
}

function drawBox(pen, i, x, width) {
  const y = depth[i] * ROW;
  const faint = (found && !found[i]) || (zoomed >= 0 && depth[i] < depth[zoomed]);
  pen.globalAlpha = faint ? 0.35 : 1;
  pen.fillStyle = colour(i);
  pen.fillRect(x, y, Math.max(width - 1, 0.4), ROW - 1);
  if (i === chosen) {
    pen.strokeStyle = "#000000";
    pen.lineWidth = 2;
    pen.strokeRect(x + 1, y + 1, Math.max(width - 3, 1), ROW - 3);
  }
  const room = Math.floor((width - 8) / LETTER);
  if (room < 3) return;
  pen.globalAlpha = 1;
  pen.fillStyle = faint ? getComputedStyle(canvas).color : "#161616";
  pen.font = `${kind[i] === USER || kind[i] === STAGE ? "600 " : ""}12px ui-monospace, "DejaVu Sans Mono", monospace`;
  const text = label(i);
  pen.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, x + 4, y + ROW / 2);
}

// Frames of C have no line.
function where(i) {
  return texts[file[i]] + (file[i] && line[i] ? `:${line[i]}` : "");
}

function place(i) {
  return where(i).split(/[\\/]/).pop();
}

function label(i) {
  return `${texts[name[i]]} ${place(i)}`.trim();
}

function at(event) {
  const frame = canvas.getBoundingClientRect();
  const x = view[0] + (event.clientX - frame.left) / frame.width * (view[1] - view[0]);
  const row = Math.floor((event.clientY - frame.top) / ROW);
  for (let i = 0; i < count; i++) if (depth[i] === row && left[i] <= x && x < left[i] + took[i]) return i;
  return -1;
}

function percent(part, all) {
  return `${(100 * part / Math.max(all, 1)).toFixed(part < all / 10 ? 1 : 0)} %`;
}

function describe(i) {
  const [python, native, waiting] = shares[i].map((share) => percent(share, took[i]));
  return [
    texts[name[i]],
    where(i),
    `${seconds(took[i] / 1e6)}, ${percent(took[i], end)} of all; ${seconds(own[i] / 1e6)} in itself`,
    `${looks[i]} ${looks[i] === 1 ? "look" : "looks"}: Python ${python}, native ${native}, waiting ${waiting}`,
  ].filter(Boolean);
}

function tip(i, x, y) {
  const box = document.getElementById("tip");
  box.hidden = i < 0;
  if (i < 0) return;
  box.replaceChildren(...describe(i).map((text) => element("p", text)));
  box.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${Math.max(4, Math.min(y + 14, window.innerHeight - box.offsetHeight - 8))}px`;
}

function zoom(i) {
  zoomed = i;
  view = i < 0 ? [0, end] : [left[i], left[i] + Math.max(took[i], 1)];
  whole.disabled = i < 0;
  draw();
}

// Boxes whose name or file holds the text are strong, all others faint; what they took is told once.
function search() {
  const text = find.value.trim().toLowerCase();
  found = text ? left.map((_, i) => label(i).toLowerCase().includes(text)) : null;
  told.textContent = "";
  if (found) {
    const outer = left.map((_, i) => found[i] && !around(parent[i]).some((j) => found[j]));
    const sum = outer.reduce((all, yes, i) => all + (yes ? took[i] : 0), 0), hits = found.filter(Boolean).length;
    told.textContent = `${hits} ${hits === 1 ? "box" : "boxes"}: ${seconds(sum / 1e6)}, ${percent(sum, end)} of all`;
  }
  draw();
}

// The box above, the widest one below, or the next one on the same row.
function neighbour(key) {
  if (chosen < 0) return 0;
  const same = (i) => parent[i] === parent[chosen];
  const order = [...left.keys()].filter(key === "ArrowDown" ? (i) => parent[i] === chosen : same);
  if (key === "ArrowUp") return parent[chosen];
  if (key === "ArrowDown") return order[0] ?? chosen;
  return order[order.indexOf(chosen) + (key === "ArrowRight" ? 1 : -1)] ?? chosen;
}

function pressed(event) {
  if (event.key === "Escape") zoom(-1);
  else if (event.key === "Enter" && chosen >= 0) zoom(chosen);
  else if (event.key.startsWith("Arrow")) {
    chosen = Math.max(0, neighbour(event.key));
    told.textContent = describe(chosen).join(" · ");
    tip(-1);
    draw();
  } else return;
  event.preventDefault();
}

canvas.addEventListener("mousemove", (event) => tip(at(event), event.clientX, event.clientY));
canvas.addEventListener("mouseleave", () => tip(-1));
canvas.addEventListener("click", (event) => {
  const i = at(event);
  tip(-1);
  zoom(i >= 0 && parent[i] < 0 && zoomed === i ? -1 : i);
});
canvas.addEventListener("keydown", pressed);
find.addEventListener("input", search);
document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
whole.addEventListener("click", () => zoom(-1));
window.addEventListener("resize", draw);
draw();
