// A page on paper: light, as wide as a sheet on its side, and whole where it could be scrolled.

const paper = {
  // CSS pixels across the narrower of both usual sheets, Letter, less its margins
  width: 980,

  // Printing does not wait: pictures are drawn at once, and what is too wide is shrunk, not laid out anew.
  put() {
    const dark = document.documentElement.dataset.theme === "dark";
    if (dark) paper.light();
    const styles = [...paper.shrunk(), ...paper.broken()];
    for (const [node, name, value] of styles) node.style[name] = value;
    window.addEventListener("afterprint", () => {
      for (const [node, name] of styles) node.style[name] = "";
      if (dark) page.tint(true);
    }, { once: true });
  },

  light() {
    page.tint(false);
    for (const view of Bokeh.index.query((view) => view.model.type === "Figure")) view.repaint();
  },

  // Between sheets: no table and no picture; what a flexible box moves to the next one lies over what is there.
  broken() {
    const whole = everywhere(".tabulator, .bk-Canvas").map((node) => [node.getRootNode().host, "breakInside", "avoid"]);
    const boxes = everywhere(".bk-panel-models-layout-Column").map((node) => [node, "display", "block"]);
    return [...whole, ...boxes];
  },

  // By how much: the page, and what is wider than the place that it is scrolled in.
  shrunk() {
    const whole = [document.body, "zoom", Math.min(1, paper.width / document.documentElement.clientWidth)];
    const scrolled = everywhere("*", document.body).filter((node) =>
      node.scrollWidth > node.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(node).overflowX));
    return [whole, ...scrolled.map((node) =>
      [node.closest(".tabulator") ?? node, "zoom", node.clientWidth / node.scrollWidth])];
  },
};
