// Lines over time in a Bokeh figure: what all of them are at the instant under the pointer.

const WRITTEN = {
  size,
  rate: (v) => `${size(v)}/s`,
  percent: (v) => `${Math.round(v)} %`,
  share: (v) => `${Math.round(100 * v)} %`,
  mean: (v) => v.toLocaleString("en", { maximumFractionDigits: 2 }),
  count: (v) => v.toLocaleString("en", { maximumFractionDigits: 1 }),
};

const curves = {
  written: (unit, value) => WRITTEN[unit](value),

  hover(figure, lines, unit, event) {
    const { x_range: x, y_range: y } = figure;
    const inside = x.start <= event.x && event.x <= x.end && y.start <= event.y && event.y <= y.end;
    const found = inside ? lines.filter((line) => line.visible).map((line) => curves.at(line, event.x)) : [];
    const known = found.filter(Boolean).sort((a, b) => b.value - a.value);
    const pairs = known.map(({ name, value }) => [name, WRITTEN[unit](value)]);
    tip(pairs.length ? [["", `at ${seconds(Math.max(0, event.x))}`], ...pairs] : null, event, figure);
  },

  leave() {
    tip(null);
  },

  // Value of a line at the sample nearest to an instant; null before its first and after its last.
  at(line, t) {
    const { t: times, v: values } = line.data_source.data;
    const n = times.length;
    let [low, high] = [0, n];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] < t) low = middle + 1;
      else high = middle;
    }
    if (!n || low === n || (low === 0 && times[0] > t)) return null;
    const i = low > 0 && t - times[low - 1] < times[low] - t ? low - 1 : low;
    return { name: line.name, value: values[i] };
  },
};
