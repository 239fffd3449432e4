// What is selected, everywhere at once: a stage, layers, keys. Pictures listen and draw again.

class Selection {
  constructor(tables) {
    this.failed = failedRows(tables);
    this.tables = tables;  // {steps: [{stage, name}], layers: [{name, prefix, line, group}], ...}
    this.listeners = new Set();
    this.mode = "layer";
    this.clear();
  }

  clear() {
    this.stage = "";
    this.layers = null;
    this.runs = null;
    this.text = "";
  }

  get empty() {
    return !this.stage && !this.layers && !this.runs;
  }

  change(what) {
    Object.assign(this, what);
    this.own("[data-sp-legend]").forEach((list) => {
      list.hidden = list.dataset.spLegend !== this.mode;
    });
    this.own("[data-sp-stage]").forEach((button) => {
      button.setAttribute("aria-pressed", String(button.dataset.spStage === this.stage));
    });
    for (const listener of this.listeners) listener(this);
  }

  // What was chosen in another recording of the same run, whose layers have other numbers.
  follow({ mode, stage, layers, text, tables }) {
    if (text) this.search(text);
    else if (layers) {
      const key = ({ name, line }) => `${name}\n${line}`;
      const chosen = new Set([...layers].map((i) => key(tables.layers[i])));
      this.layers = new Set(this.tables.layers.flatMap((layer, i) => (chosen.has(key(layer)) ? [i] : [])));
    }
    this.change({ mode, stage });
  }

  // All elements of a selector, but for those that say that they are another app's.
  own(selector) {
    const name = Object.values(apps).find(({ selection }) => selection === this)?.name;
    return everywhere(selector).filter(({ dataset }) => (dataset.spApp ?? name) === name);
  }

  // Search by key, layer, prefix or line of code.
  search(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return this.change({ text: "", layers: null, runs: null });
    const layers = new Set();
    this.tables.layers.forEach((layer, i) => {
      const all = `${layer.name}\n${layer.prefix}\n${layer.line}`.toLowerCase();
      if (i > 0 && all.includes(wanted)) layers.add(i);
    });
    const runs = layers.size ? null : this.keyed(wanted);
    this.change({ text, layers: layers.size ? layers : null, runs });
  }

  // Rows of the table of tasks whose key holds a text; null if the keys are not at hand.
  keyed(wanted) {
    const keys = this.tables.keys;
    if (!keys) return new Set();
    const found = new Set();
    for (let i = 0; i < keys.length; i++) if (keys[i].toLowerCase().includes(wanted)) found.add(i);
    return found;
  }

  // Whether a box is of what is selected; everything is if nothing is selected.
  filter() {
    const { stage, layers, runs } = this;
    if (this.empty) return () => true;
    const stages = this.tables.steps.map((step) => !stage || step.stage === stage);
    return (row, i) => stages[row.step[i]]
      && (!layers || layers.has(row.layer[i]))
      && (!runs || runs.has(row.run[i]));
  }

  // Which group a box is drawn as, in the mode chosen.
  grouping(mode = "") {
    const { steps, layers, stages } = this.tables;
    const compute = steps.findIndex((step) => step.name === "compute");
    const byStage = Uint8Array.from(steps, (step) => stages.indexOf(step.stage));
    const by = mode || this.mode;
    if (by === "stage") return (row, i) => byStage[row.step[i]];
    const other = this.tables.palettes[by].length - 1;
    const byLayer = Uint8Array.from(layers, (layer) => layer.group);
    const of = by === "gil" ? (row, i) => (row.holds ? WATCHED : Math.ceil(row.gil[i] / 2))
      : (row, i) => byLayer[row.layer[i]];
    return (row, i) => row.step[i] === compute ? of(row, i) : other;
  }

  palette(mode = "") {
    return this.tables.palettes[mode || this.mode];
  }

  // The key of a run, where keys are at hand.
  keyOf(run) {
    return run >= 0 && this.tables.keys ? this.tables.keys[run] ?? "" : "";
  }

  // What a box is summed up under: its layer, or its step where it is no task.
  nameOf(row, i) {
    const layer = this.tables.layers[row.layer[i]];
    return layer && layer.name ? layer.name : this.tables.steps[row.step[i]].name || "idle";
  }
}
