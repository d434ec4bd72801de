// Tells in words what a map shows: sums, places, holes, segments and objects.

import { breakable, element, table } from "./elements.js";
import { bytes, counted, number, percent, requestsUpTo3 } from "./numbers.js";

const MAX_ROWS = 200;
const PART = "part of a larger response";

function nameOf(record) {
  return record.url ? breakable(record.url) : PART;
}

// Tells where a cell of a store without a log is.
export function placeOf(cell) {
  if (cell.file === null) return `${bytes(cell.size)}, not used by any file yet.`;
  return `${bytes(cell.size)} of the file ${cell.file}, from byte ${number(cell.at)}: `
    + `${number(cell.records)} live records, ${bytes(cell.live)}.`;
}

export function holesPart(map) {
  const least = (group) => bytes(map.least_hole * 2 ** group);
  const size = (group) => `${least(group)} to ${least(group + 1)}`;
  const rows = map.holes.map(([holes, held], group) => [size(group), number(holes), bytes(held)])
    .filter((row) => row[1] !== "0");
  if (rows.length === 0) return element("p", {}, "The segments have no unused space.");
  return table("Unused space within segments (holes)", [{ title: "size of a hole" },
    { title: "holes", number: true }, { title: "bytes", number: true }], rows);
}

export function summary(map, cells) {
  const all = cells.reduce((sum, cell) => sum + cell.size, 0);
  const live = cells.reduce((sum, cell) => sum + cell.live, 0);
  const each = map.segments_of_cell > 1
    ? ` Each rectangle shows ${map.segments_of_cell} segments.` : "";
  const apart = map.apart.records === 0 ? "" : ` Not on the map: ${number(map.apart.records)} `
    + `records (${bytes(map.apart.bytes)}) in files of their own, or still in memory.`;
  return `${number(map.segments)} segments of ${bytes(map.segment_bytes)}; `
    + `${number(map.free)} free; ${percent(live / Math.max(all, 1))} of the space holds live data.`
    + `${apart}${each}`;
}

export function segmentTable(map, cells) {
  const shown = cells.filter((cell) => cell.state !== "free").slice(0, MAX_ROWS);
  if (!map.is_log) {
    return table(`Segments with records (up to ${MAX_ROWS})`, [{ title: "segment" },
      { title: "file" }, { title: "first byte", number: true }, { title: "state" },
      { title: "live records", number: true }, { title: "live bytes", number: true }],
    shown.map((cell) => [number(cell.slot), cell.file, number(cell.at), cell.state,
      number(cell.records), bytes(cell.live)]));
  }
  const rows = shown.map((cell) => [number(cell.slot), map.areas[cell.log],
    number(cell.sequence), cell.state, number(cell.age), number(cell.records), bytes(cell.live)]);
  return table(`Segments with records (up to ${MAX_ROWS})`, [{ title: "segment" },
    { title: "log" }, { title: "number", number: true }, { title: "state" },
    { title: "newer segments", number: true }, { title: "live records", number: true },
    { title: "live bytes", number: true }], rows);
}

// Returns the table of the objects of a cell. In a log, it tells the fate of each.
export function objectsTable(map, { records, live, copied }) {
  const url = { title: "URL", class: "url" };
  const size = { title: "bytes", number: true };
  const shown = `listed: ${number(records.length)}`;
  if (!map.is_log) {
    return table(`${counted(live, "object")}; ${shown}`, [url, size],
      records.map((one) => [nameOf(one), bytes(one.bytes)]));
  }
  const fates = `${counted(live, "object")}. Before eviction, foxy copies ${number(copied)} with `
    + "enough requests for the size";
  return table(`${fates}; ${shown}`, [url, size, { title: "requests", number: true },
    { title: "at eviction" }], records.map((one) => [nameOf(one), bytes(one.bytes),
    requestsUpTo3(one.uses), one.copied ? "copied" : "removed"]));
}
