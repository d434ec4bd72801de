// Turns the map of a store into cells with colours, and tells what the cells and colours mean.

import { element } from "./elements.js";
import { hostColour, scale } from "./map-picture.js";

const LOGS = { main: "Main log: small records, and records that were requested again",
  probation: "Probation log: large new records" };
export const MODES = [["live", "share of live data"], ["age", "age"], ["use", "requests"],
  ["host", "host"], ["state", "state"]];
const MEANINGS = {
  free: "Free: foxy will write a new segment here.",
  open: "Write position: foxy writes new records here.",
  sealing: "Full: foxy is writing the list of the segment's records.",
  sealed: "Complete: the records stay here until foxy evicts the segment.",
  copying: "Next to be evicted. foxy first copies the requested records to a new segment.",
  leaving: "Being evicted: foxy removes the records from the index, then frees the space.",
};

// The meanings in a store that has no log.
const OTHER_MEANINGS = {
  free: "Free: no live record is here.",
  used: "Used: foxy writes new records between the live records, or replaces them.",
  open: "Write position: the next record goes here.",
};

// Turns the answer of the server into cells with names.
export function cellsOf(map) {
  return map.cells.map(([slot, state, log, sequence, age, written, records, live, uses, strips,
    size, file, at]) =>
    ({ slot, state: map.states[state], log, sequence, age, written, records, live, uses, strips,
      file: map.files[file] ?? null, at, size, share: size ? live / size : 0 }));
}

// Returns the headings of the logs or areas of a map.
export function headings(map) {
  return map.areas.map((name) => LOGS[name] ?? name[0].toUpperCase() + name.slice(1));
}

export function meaning(map, cell) {
  return (map.is_log ? MEANINGS : OTHER_MEANINGS)[cell.state];
}

// Returns the colourings that make sense for a map.
export function modesOf(map, cells) {
  const hasAges = map.is_log || cells.some((cell) => cell.age > 0);
  return MODES.filter(([mode]) => mode === "age" ? hasAges : mode !== "use" || map.is_log);
}

function meanUse(uses) {
  const all = uses.reduce((sum, count) => sum + count, 0);
  return all ? uses.reduce((sum, count, use) => sum + count * use, 0) / all : 0;
}

// The colours of cells, and the legend that explains them.
export class Colours {
  constructor(picture) {
    this.picture = picture;
    this.hosts = new Map();
  }

  apply(mode, cells) {
    const oldest = [1, 1];
    for (const cell of cells) oldest[cell.log] = Math.max(oldest[cell.log], cell.age);
    this.rank();
    for (const cell of cells) {
      if (mode === "live") cell.colour = scale(cell.share);
      else if (mode === "age") cell.colour = scale(1 - cell.age / oldest[cell.log]);
      else if (mode === "use") cell.colour = scale(meanUse(cell.uses) / 3);
      else if (mode === "host") cell.colour = hostColour(this.ranks.get(this.hostOf(cell)));
      else cell.colour = this.picture.stateColour(cell.state);
    }
  }

  hostOf(cell) {
    return this.hosts.get(`${cell.slot}:${cell.sequence}`);
  }

  // Gives the hosts with the most segments their own colours.
  rank() {
    const counts = new Map();
    for (const host of this.hosts.values()) counts.set(host, (counts.get(host) ?? 0) + 1);
    const sorted = [...counts].filter(([host]) => host).sort((a, b) => b[1] - a[1]);
    this.ranks = new Map(sorted.map(([host], index) => [host, index]));
  }

  // Returns the legend of a colouring, with the frames of segments in motion.
  legend(mode, isLog) {
    const inLogs = [["sealing", "just filled"], ["copying", "next to be evicted"],
      ["leaving", "being evicted"]];
    const frames = [["open", "write position"], ...isLog ? inLogs : []].map(([state, text]) => {
      const swatch = element("span", { class: `swatch frame ${state}` });
      swatch.style.borderColor = this.picture.stateColour(state);
      return element("li", {}, swatch, text);
    });
    return [...this.colourLegend(mode, isLog), ...frames];
  }

  colourLegend(mode, isLog) {
    const item = (colour, text) => {
      const swatch = element("span", { class: "swatch" });
      swatch.style.background = colour;
      return element("li", {}, swatch, text);
    };
    const steps = (texts) => texts.map((text, index) =>
      item(scale(index / (texts.length - 1)), text));
    if (mode === "live") return steps(["no live data", "half live data", "only live data"]);
    if (mode === "age") return steps(["oldest", "middle", "newest"]);
    if (mode === "use") return steps(["not requested", "1 request", "2 requests", "3 or more"]);
    if (mode === "state") {
      return ["free", isLog ? "sealed" : "used"].map((state) => item(this.picture.stateColour(state), state));
    }
    const named = [...this.ranks].slice(0, 8).map(([host, rank]) => item(hostColour(rank), host));
    return [...named, item(hostColour(99), "other or unknown host")];
  }
}
