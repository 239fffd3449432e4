// A page on paper: light, as wide as a sheet on its side, and whole where it could be scrolled, turned over
// or opened.

const paper = {
  // CSS pixels across the narrower of both usual sheets, Letter, less its margins
  width: 980,
  // rows of a table, of which a reader turns fewer at a time
  rows: 200,

  // Printing does not wait: pictures are drawn at once, and what is too wide is shrunk, not laid out anew.
  put() {
    const dark = document.documentElement.dataset.theme === "dark";
    if (dark) paper.light();
    const turned = paper.turned();
    for (const { table } of turned) paper.turn(table, paper.rows, 1);
    const closed = everywhere("details:not([open])");
    for (const node of closed) node.open = true;
    const styles = [...paper.shrunk(), ...paper.broken()];
    for (const [node, name, value] of styles) node.style[name] = value;
    window.addEventListener("afterprint", () => {
      for (const [node, name] of styles) node.style[name] = "";
      for (const { table, size, at } of turned) paper.turn(table, size, at);
      for (const node of closed) node.open = false;
      if (dark) page.tint(true);
    }, { once: true });
  },

  light() {
    page.tint(false);
    for (const view of Bokeh.index.query((view) => view.model.type === "Figure")) view.repaint();
  },

  // Tables that are seen a page at a time, how many rows that has, and at which they are.
  turned() {
    const tables = Bokeh.index.query((view) => view.tabulator && view.is_displayed).toArray().map((view) => view.tabulator);
    return tables.filter((table) => table.getPageMax() > 1)
      .map((table) => ({ table, size: table.getPageSize(), at: table.getPage() }));
  },

  turn(table, size, at) {
    table.setPageSize(size);
    table.setPage(1);  // how many pages there are now is not known before
    if (at > 1) table.setPage(at);
  },

  // Between sheets: no picture and no table that fits on one, nor what stands before them; what a flexible
  // box moves to the next one lies over what is there.
  broken() {
    const whole = everywhere(".tabulator, .bk-Canvas").map((node) => node.getRootNode().host);
    const heads = whole.flatMap((host) => paper.before(host, (node) => !whole.includes(node)));
    const boxes = everywhere(".bk-panel-models-layout-Column").map((node) => [node, "display", "block"]);
    return [
      ...whole.map((node) => [node, "breakInside", "avoid"]), ...heads.map((node) => [node, "breakAfter", "avoid"]),
      ...boxes,
    ];
  },

  // What stands before a node in the same box, as long as it may.
  before(node, may) {
    const found = [];
    for (let one = node.previousElementSibling; one && may(one); one = one.previousElementSibling) found.push(one);
    return found;
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
