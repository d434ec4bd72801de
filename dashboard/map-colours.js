// Turns the map of a store into cells with colours, and tells what the cells and colours mean.

import { element, table } from "./elements.js";
import { hostColour, scale } from "./map-picture.js";
import { bytes, number, percent } from "./numbers.js";

const MAX_ROWS = 200;
export const LOGS = ["Main log: small records, and records that were requested again",
  "Probation log: large new records"];
export const MODES = [["live", "live share"], ["age", "age"], ["use", "requests"], ["host", "host"],
  ["state", "state"]];
export const MEANINGS = {
  free: "No segment is here. The log will write here.",
  open: "A write head: foxy writes new records here.",
  sealing: "The segment is full. foxy writes the list of its records.",
  sealed: "The segment is complete.",
  copying: "The next to be discarded. foxy copies the records that were requested.",
  leaving: "Being discarded. Its records leave the index, then the space is free.",
};

// Turns the answer of the server into cells with names.
export function cellsOf(map) {
  return map.cells.map(([slot, state, log, sequence, age, written, records, live, uses, strips]) =>
    ({ slot, state: map.states[state], log, sequence, age, written, records, live, uses, strips,
      share: live / (map.segment_bytes * map.segments_of_cell) }));
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
    const oldest = [0, 1].map((log) =>
      Math.max(1, ...cells.filter((cell) => cell.log === log).map((cell) => cell.age)));
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
  legend(mode) {
    const frames = [["open", "write head"], ["sealing", "being completed"],
      ["copying", "being copied from"], ["leaving", "being discarded"]].map(([state, text]) => {
      const swatch = element("span", { class: `swatch frame ${state}` });
      swatch.style.borderColor = this.picture.stateColour(state);
      return element("li", {}, swatch, text);
    });
    return [...this.colourLegend(mode), ...frames];
  }

  colourLegend(mode) {
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
      return ["free", "sealed"].map((state) => item(this.picture.stateColour(state), state));
    }
    const named = [...this.ranks].slice(0, 8).map(([host, rank]) => item(hostColour(rank), host));
    return [...named, item(hostColour(99), "another or unknown host")];
  }
}

export function holesPart(map) {
  const size = (group) => `${bytes(4096 * 2 ** group)} to ${bytes(4096 * 2 ** (group + 1))}`;
  const rows = map.holes.map(([holes, held], group) => [size(group), number(holes), bytes(held)])
    .filter((row) => row[1] !== "0");
  if (rows.length === 0) return element("p", {}, "There are no holes.");
  return table("Holes: space in segments that no live record uses", [{ title: "size" },
    { title: "holes", number: true }, { title: "bytes", number: true }], rows);
}

export function summary(map, cells) {
  const all = map.segments * map.segment_bytes;
  const live = cells.reduce((sum, cell) => sum + cell.live, 0);
  const free = cells.filter((cell) => cell.state === "free").length;
  const each = map.segments_of_cell > 1
    ? ` A rectangle stands for ${map.segments_of_cell} segments.` : "";
  return `${number(map.segments)} segments of ${bytes(map.segment_bytes)}; ${number(free)} free; `
    + `${percent(live / all)} of the space is live.${each}`;
}

export function segmentTable(cells) {
  const shown = cells.filter((cell) => cell.state !== "free").slice(0, MAX_ROWS);
  const rows = shown.map((cell) => [number(cell.slot), ["main", "probation"][cell.log],
    number(cell.sequence), cell.state, number(cell.age), number(cell.records), bytes(cell.live)]);
  return table(`Segments with records, at most ${MAX_ROWS}`, [{ title: "segment" },
    { title: "log" }, { title: "number", number: true }, { title: "state" },
    { title: "newer segments", number: true }, { title: "live records", number: true },
    { title: "live bytes", number: true }], rows);
}
