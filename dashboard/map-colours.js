// Turns the map of a store into cells with colours, and tells what the cells and colours mean.

import { element } from "./elements.js";
import { hostColour, scale } from "./map-picture.js";

const LOGS = { main: "Main log: small records, and records that were requested again",
  probation: "Probation log: large new records" };
export const MODES = [["live", "live share"], ["age", "age"], ["use", "requests"], ["host", "host"],
  ["state", "state"]];
const MEANINGS = {
  free: "No segment is here. The log will write here.",
  open: "A write head: foxy writes new records here.",
  sealing: "The segment is full. foxy writes the list of its records.",
  sealed: "The segment is complete.",
  copying: "The next to be discarded. foxy copies the records that were requested.",
  leaving: "Being discarded. Its records leave the index, then the space is free.",
};

// The meanings in a store that has no log.
const OTHER_MEANINGS = {
  free: "No live record is here.",
  used: "Live records are here. New records go between them, or replace them.",
  open: "The write head: the next record goes here.",
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
    const inLogs = [["sealing", "being completed"], ["copying", "being copied from"],
      ["leaving", "being discarded"]];
    const frames = [["open", "write head"], ...isLog ? inLogs : []].map(([state, text]) => {
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
    if (mode === "live") return steps(["nothing live", "half live", "all live"]);
    if (mode === "age") return steps(["oldest", "middle", "newest"]);
    if (mode === "use") return steps(["no request since written", "1", "2", "3 or more"]);
    if (mode === "state") {
      return ["free", isLog ? "sealed" : "used"].map((state) => item(this.picture.stateColour(state), state));
    }
    const named = [...this.ranks].slice(0, 8).map(([host, rank]) => item(hostColour(rank), host));
    return [...named, item(hostColour(99), "another or unknown host")];
  }
}
