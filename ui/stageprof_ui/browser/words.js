// Numbers with units as quantity.py writes them, and text that acts on nobody.

function seconds(value) {
  if (!isFinite(value)) return "?";
  if (value < 0.00005) return value > 0 ? `${Math.max(1, Math.round(value * 1e6))} µs` : "0 s";
  if (value < 0.9995) return `${value * 1e3 < 9.95 ? (value * 1e3).toFixed(1) : Math.round(value * 1e3)} ms`;
  if (value < 59.95) return `${value < 9.995 ? value.toFixed(2) : value.toFixed(1)} s`;
  const whole = Math.round(value), minutes = Math.floor(whole / 60);
  const two = (n) => String(n).padStart(2, "0");
  if (minutes < 60) return `${minutes} min ${two(whole % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

function size(value) {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (value < 999.5) return `${unit === "B" || value >= 99.95 ? Math.round(value) : value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} TB`;
}

// An element with text in it. Nothing here is ever parsed as HTML.
function element(tag, text = "", className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = className;
  return made;
}

// Rows of name and value; a row without a name is a heading.
function listing(pairs) {
  const list = element("dl");
  for (const [name, value] of pairs) {
    if (name) list.append(element("dt", name), element("dd", value));
    else list.append(element("dt", value, "sp-heading"));
  }
  return list;
}

// On the document itself, which in a notebook has none of our sheets.
const TIP = "position: fixed; z-index: 50; pointer-events: none; max-width: min(480px, 90vw);"
  + " background: var(--sp-card, #f5f5f4); color: var(--sp-ink, #1b1b1b);"
  + " border: 1px solid var(--sp-line, #d9d9d6); border-radius: 4px; padding: 6px 10px;"
  + " box-shadow: 0 2px 8px rgb(0 0 0 / 25%); font: 13px/1.45 system-ui, sans-serif;";

// The box beside the pointer; `pairs` null hides it.
function tip(pairs, event, figure) {
  let box = document.getElementById("sp-tip");
  if (!box) {
    box = element("div");
    box.id = "sp-tip";
    box.style.cssText = TIP;
    box.setAttribute("role", "status");
    document.body.append(box);
  }
  box.hidden = !pairs;
  if (!pairs) return;
  box.replaceChildren(listing(pairs));
  const canvas = Bokeh.index.find_one(figure)?.canvas_view?.el ?? document.body;
  const frame = canvas.getBoundingClientRect();
  const x = frame.left + event.sx, y = frame.top + event.sy;
  const right = x + box.offsetWidth + 24 > window.innerWidth;
  box.style.left = `${right ? Math.max(4, x - box.offsetWidth - 12) : x + 14}px`;
  box.style.top = `${Math.max(4, Math.min(y + 14, window.innerHeight - box.offsetHeight - 4))}px`;
}
