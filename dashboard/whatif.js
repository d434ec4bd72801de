// The view of the hits that other cache sizes and policies would have.

import { drawing, element, show, table } from "./elements.js";
import { bytes, number, percent } from "./numbers.js";
import { ask } from "./server.js";

const WIDTH = 600;
const HEIGHT = 160;
const REFRESH = 10_000;
const SERIES = [{ name: "hit ratio", class: "memory", key: "hits" },
  { name: "byte hit ratio", class: "fetched", key: "byte_hits" }];
const NAMES = { 0.25: "¼×", 0.5: "½×" };

function name(factor) {
  return NAMES[factor] ?? `${factor}×`;
}

// Returns a share with half the width of its interval.
function withMargin({ value, low, high }) {
  if (low === null) return `${percent(value)} ±?`;
  const half = ((high - low) / 2) * 100;
  return half < 0.05 ? percent(value) : `${percent(value)} ±${half.toFixed(1)}`;
}

function isPresent(tier, point) {
  return point.policy === tier.policy;
}

// Draws a line for hits and one for bytes, each with its intervals.
function picture(tier, points) {
  const x = (index) => ((index + 0.5) / points.length) * WIDTH;
  const y = (share) => HEIGHT - share * (HEIGHT - 4);
  const grid = [0.25, 0.5, 0.75].map((share) => drawing("line", {
    x1: 0, x2: WIDTH, y1: y(share), y2: y(share), class: "grid",
  }));
  const shapes = SERIES.flatMap((series, shift) => {
    const at = (index) => x(index) + shift * 4;
    const places = points.map((point, index) => `${index ? "L" : "M"}${at(index)} ${
      y(point[series.key].value).toFixed(1)}`);
    const intervals = points.flatMap((point, index) => {
      const { low, high } = point[series.key];
      return low === null ? [] : [drawing("line", {
        x1: at(index), x2: at(index), y1: y(low), y2: y(high), class: `line ${series.class}`,
      })];
    });
    return [drawing("path", { d: places.join(""), class: `line ${series.class}` }), ...intervals];
  });
  const spoken = points.map((point) =>
    `${name(point.factor)}: ${percent(point.hits.value)} hits`).join(", ");
  return drawing("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "chart",
    preserveAspectRatio: "none",
    "aria-label": `Hit ratio by size of the ${tier.tier} cache. ${spoken}.`,
  }, ...grid, ...shapes);
}

function pointTable(caption, first, points, label) {
  return table(caption, [{ title: first }, { title: "size", number: true },
    { title: "hit ratio", number: true }, { title: "byte hit ratio", number: true }],
  points.map((point) => [label(point), bytes(point.capacity), withMargin(point.hits),
    withMargin(point.byte_hits)]));
}

function hostTable(tier, points) {
  const columns = [{ title: "host", class: "url" }, { title: "requests", number: true },
    ...points.map((point) => ({ title: name(point.factor), number: true }))];
  return table(`Hit ratio of the busiest hosts, by size of the ${tier.tier} cache`, columns,
    tier.hosts.map((host) => [host.host, number(host.requests),
      ...host.points.map(([hits]) => percent(hits.value))]));
}

function tierCards(tier) {
  const points = tier.points.filter((point) => isPresent(tier, point));
  const others = tier.points.filter((point) => !isPresent(tier, point));
  const title = `Size of the ${tier.tier} cache`;
  const label = (point) => `${name(point.factor)}${point.was_full ? "" : " *"}`;
  const curve = element("figure", { class: "card" },
    element("figcaption", {}, element("h3", {}, title),
      element("span", { class: "chart-top" }, "scale: 0 to 100 %")),
    picture(tier, points),
    element("div", { class: "chart-times factors" },
      points.map((point) => element("span", {}, name(point.factor)))),
    element("ul", { class: "legend" }, SERIES.map((series) => element("li", {},
      element("span", { class: `swatch ${series.class}` }), series.name))),
    element("p", { class: "note" }, `Now: ${bytes(tier.capacity)} with ${tier.policy}. `
      + `Sample: ${tier.sampled === 1 ? "all" : `1 of ${number(1 / tier.sampled)}`} keys.`),
    pointTable(title, "times the present size", points, label));
  const policies = others.length > 0 && element("div", { class: "card quiet" },
    element("h3", {}, "Other policies"),
    pointTable(`Other policies, at the present size of the ${tier.tier} cache`, "policy", others,
      (point) => point.policy));
  const hosts = tier.hosts.length > 0 && element("div", { class: "card quiet" },
    element("h3", {}, "Busiest hosts"), hostTable(tier, points));
  return [curve, policies, hosts].filter(Boolean);
}

export function whatIfView() {
  const result = element("div");
  let asked = 0;
  const refresh = async () => {
    asked = Date.now();
    try {
      const report = await ask("/data/whatif");
      if (report.tiers.length === 0) {
        show(result, element("p", { class: "note" }, "The setting what-if is off."));
        return;
      }
      const lost = report.lost > 0
        ? ` foxy dropped ${number(report.lost)} sampled requests, because there were too many.`
        : "";
      const note = `Estimates for ${number(report.requests)} requests, from a sample of keys, with `
        + "95 % confidence intervals. Hits at 1× are counted, not estimated. * means not full yet: "
        + `the value will still rise.${lost}`;
      show(result, element("p", { class: "note" }, note), report.tiers.flatMap(tierCards));
    } catch (refusal) {
      show(result, element("p", { class: "refused" }, refusal.message));
    }
  };
  return {
    name: "whatif",
    title: "What if",
    content: result,
    open: refresh,
    update() {
      if (Date.now() - asked > REFRESH) refresh();
    },
  };
}
