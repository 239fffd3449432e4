// The page around the views: which one is shown, light or dark, and buttons inside views.
// Buttons carry data-sp-* attributes and are heard here, so that no view holds a script.

const page = {
  // Show what the address asks for, and take on the theme as views arrive.
  begin() {
    document.documentElement.dataset.theme = page.dark() ? "dark" : "light";
    page.show(location.hash.slice(1));
    const settle = () => page.tint(page.dark());
    const seen = setInterval(() => {
      if (!window.Bokeh?.documents?.length) return;
      clearInterval(seen);
      settle();
      Bokeh.documents.forEach((doc) => doc.on_change?.((change) => { if (change.kind === "ModelChanged" && change.attr === "children") settle(); }));
    }, 50);
  },

  // Show one view; the address keeps it, and without one it is the first.
  show(name) {
    const links = [...document.querySelectorAll("[data-sp-page]")];
    const known = links.some((link) => link.dataset.spPage === name);
    if (name && !known && links.some((link) => link.hasAttribute("aria-current"))) return;  // "#sp-main"
    const wanted = known ? name : links[0]?.dataset.spPage;
    for (const section of document.querySelectorAll("[data-sp-view]")) {
      section.hidden = section.dataset.spView !== wanted;
    }
    for (const link of links) {
      if (link.dataset.spPage === wanted) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    window.dispatchEvent(new Event("resize"));
  },

  // Light or dark from now on, here and on every page of this place.
  theme(dark) {
    page.tint(dark);
    try { localStorage.setItem("stageprof-theme", dark ? "dark" : "light"); } catch { /* not kept */ }
  },

  // As chosen before, else as the system has it.
  tint(dark) {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    const [ink, faint, grid] = dark ? ["#e8e8e8", "#b4b4b4", "#3a3a3a"] : ["#1b1b1b", "#595959", "#e0e0e0"];
    for (const doc of Bokeh.documents) for (const model of doc._all_models.values()) tint(model, ink, faint, grid);
  },

  dark() {
    let kept = null;
    try { kept = localStorage.getItem("stageprof-theme"); } catch { /* none */ }
    return kept ? kept === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  },

  // Everything that a view's own button asks for.
  press(button, path) {
    const asked = button.dataset;
    if (asked.spCopy !== undefined) return copy(button);
    const mine = Object.values(apps).filter(({ name }) => (asked.spApp ?? name) === name);
    if (asked.spStage !== undefined) {
      mine.forEach(({ selection }) => selection.change({
        stage: selection.stage === asked.spStage ? "" : asked.spStage }));
    }
    // the live picture numbers its layers in another way than the pages of a snapshot
    const numbered = mine.filter(({ name }) => name !== "live");
    if (asked.spShow !== undefined) {
      numbered.forEach((one) => point(one, JSON.parse(asked.spShow)));
      page.turn(path);
    }
    if (asked.spClear !== undefined) mine.forEach((one) => { one.selection.clear(); one.selection.change({}); });
  },

  // To the time line: a page by its address, or in a notebook the tab beside those that were pressed in.
  turn(path) {
    if (document.querySelector("[data-sp-page]")) { location.hash = "#timeline"; return; }
    const tabs = path.flatMap((node) => [...(node.querySelectorAll?.(".bk-tab") ?? [])]);
    tabs.find((tab) => tab.textContent.trim() === "Timeline")?.click();
  },
};

// Select what a finding is about: its layers and its span of time.
function point({ selection, drawings }, { layers, start, stop }) {
  selection.clear();
  selection.change({ layers: layers.length ? new Set(layers) : null });
  const first = Object.values(drawings)[0];
  if (first && stop > start) first.figure.x_range.setv({ start, end: stop });
}

// All elements of a selector, those in the shadow trees of views too.
function everywhere(selector, root = document) {
  const found = [...root.querySelectorAll(selector)];
  for (const host of root.querySelectorAll("*")) {
    if (host.shadowRoot) found.push(...everywhere(selector, host.shadowRoot));
  }
  return found;
}

async function copy(button) {
  const text = button.parentNode.querySelector("pre, code").textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } catch {
    button.textContent = "select and copy by hand";
  }
  setTimeout(() => { button.textContent = "copy"; }, 1500);
}

// Text, axes and grids of a Bokeh model in the colours of the theme.
function tint(model, ink, faint, grid) {
  const give = (name, value) => { if (name in model.properties) model[name] = value; };
  if (model.type.endsWith("Axis")) {
    give("axis_label_text_color", faint);
    give("major_label_text_color", ink);
    give("axis_line_color", faint);
    give("major_tick_line_color", faint);
    give("minor_tick_line_color", faint);
  } else if (model.type === "Grid") give("grid_line_color", grid);
  else if (model.type === "Legend") {
    give("label_text_color", ink);
    give("background_fill_alpha", 0);
    give("border_line_alpha", 0);
  } else if (model.type === "Title" || model.type === "ColorBar") give("text_color", ink);
  else if (model.type === "LabelSet") give("text_color", ink);
}

document.addEventListener("click", (event) => {
  const wanted = "[data-sp-copy],[data-sp-stage],[data-sp-show],[data-sp-clear]";
  const path = event.composedPath(), button = path.find((node) => node.matches?.(wanted));
  if (button) page.press(button, path);
});
