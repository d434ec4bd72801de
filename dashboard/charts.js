// Draws charts over time as SVG: stacked areas or lines, with a legend, and a table behind them.

import { drawing, element, show, table } from "./elements.js";
import { clock } from "./numbers.js";

const WIDTH = 600;
const HEIGHT = 160;
const TABLE_ROWS = 12;

// Returns the smallest of 1, 2, 3, 4, 6, 8, 10, 20, … units that is at least `value`. The unit is
// the largest power of `base` that `value` reaches.
function roundUp(value, base) {
  const unit = base ** Math.max(Math.floor(Math.log(Math.max(value, 1)) / Math.log(base)), 0);
  const units = Math.max(value / unit, 1e-9);
  const power = 10 ** Math.floor(Math.log10(units));
  const digit = [1, 2, 3, 4, 6, 8].find((top) => top * power >= units) ?? 10;
  return digit * power * unit;
}

function path(points) {
  return points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`)
    .join("");
}

// A chart of several series. `series` has the name and the CSS class of each. A chart that `stacks`
// draws each series above the earlier ones. `base` is the factor between the units that `write`
// uses, such as 1024 for bytes.
export class TimeChart {
  constructor(title, series, write, { stacks = true, base = 1000 } = {}) {
    Object.assign(this, { title, series, write, stacks, base });
    this.picture = drawing("svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", preserveAspectRatio: "none", class: "chart",
    });
    this.top = element("span", { class: "chart-top" });
    this.from = element("span", {});
    this.to = element("span", {});
    const legend = series.map((one) => element("li", {},
      element("span", { class: `swatch ${one.class}` }), one.name));
    this.rows = element("div");
    this.details = element("details", { ontoggle: () => this.fillTable() },
      element("summary", {}, `Table: ${title.toLowerCase()}`), this.rows);
    this.root = element("figure", { class: "card" },
      element("figcaption", {}, element("h3", {}, title), this.top),
      this.picture,
      element("div", { class: "chart-times" }, this.from, this.to),
      element("ul", { class: "legend" }, legend), this.details);
  }

  // `points` has a time in milliseconds and a value of each series, oldest first.
  draw(points) {
    if (points.length < 2) return;
    this.points = points;
    const sums = points.map(({ values }) => (this.stacks
      ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values)));
    const top = roundUp(Math.max(...sums), this.base);
    const [first, last] = [points[0].time, points.at(-1).time];
    const x = (time) => ((time - first) / Math.max(last - first, 1)) * WIDTH;
    const y = (value) => HEIGHT - (value / top) * (HEIGHT - 4);
    const below = points.map(() => 0);
    const shapes = this.series.map((one, index) => {
      const edge = points.map(({ time, values }, at) => {
        const base = this.stacks ? below[at] : 0;
        below[at] = base + values[index];
        return [x(time), y(base + values[index]), y(base)];
      });
      const line = edge.map(([at, high]) => [at, high]);
      if (!this.stacks) return drawing("path", { d: path(line), class: `line ${one.class}` });
      const floor = edge.map(([at, , low]) => [at, low]).reverse();
      return drawing("path", { d: `${path([...line, ...floor])}Z`, class: `area ${one.class}` });
    });
    const grid = [0.25, 0.5, 0.75].map((share) => drawing("line", {
      x1: 0, x2: WIDTH, y1: y(top * share), y2: y(top * share), class: "grid",
    }));
    this.picture.replaceChildren(...grid, ...shapes);
    const now = this.series.map((one, index) =>
      `${one.name} ${this.write(points.at(-1).values[index])}`);
    this.picture.setAttribute("aria-label", `${this.title}. Now: ${now.join(", ")}.`);
    this.top.textContent = `scale: 0 to ${this.write(top)}`;
    this.from.textContent = clock(first);
    this.to.textContent = clock(last);
    if (this.details.open) this.fillTable();
  }

  fillTable() {
    if (!this.details.open || !this.points) return;
    const columns = [{ title: "time" }, ...this.series.map((one) =>
      ({ title: one.name, number: true }))];
    const rows = this.points.slice(-TABLE_ROWS).reverse().map(({ time, values }) =>
      [clock(time), ...values.map(this.write)]);
    show(this.rows, table(`${this.title}, newest first`, columns, rows));
  }
}
