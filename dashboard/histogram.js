// Draws histograms of latencies. Bars at the same place mean the same latencies in each histogram.

import { drawing } from "./elements.js";
import { duration, number } from "./numbers.js";
import { classOf } from "./outcomes.js";

const STEP = 7;
const HEIGHT = 26;

// Returns a picture of the requests of an outcome: a bar for each bucket.
export function histogram({ name, buckets }) {
  const counts = buckets.map(([, upTo], place) => upTo - (place > 0 ? buckets[place - 1][1] : 0));
  const most = Math.max(...counts, 1);
  const range = (place) => {
    const start = place > 0 ? buckets[place - 1][0] * 1e6 : 0;
    const end = buckets[place][0];
    return end === null ? `more than ${duration(start)}`
      : `${duration(start)} to ${duration(end * 1e6)}`;
  };
  const bars = counts.map((count, place) => {
    const height = count > 0 ? Math.max((count / most) * HEIGHT, 2) : 0;
    return drawing("rect", {
      x: place * STEP, y: HEIGHT - height, width: STEP - 1, height, class: `area ${classOf(name)}`,
    }, drawing("title", {}, `${range(place)}: ${number(count)} requests`));
  });
  const width = buckets.length * STEP;
  const floor = drawing("line", { x1: 0, x2: width, y1: HEIGHT, y2: HEIGHT, class: "grid" });
  return drawing("svg", {
    viewBox: `0 0 ${width} ${HEIGHT + 1}`, role: "img", class: "histogram",
    "aria-label": `Most frequent latency: ${range(counts.indexOf(Math.max(...counts)))}`,
  }, floor, ...bars);
}
