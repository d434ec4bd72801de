// The page of `foxy store map --html`: the maps of stores at rest, whose data the page contains.

import { element, show } from "./elements.js";
import { Colours, cellsOf, headings, modesOf } from "./map-colours.js";
import { MapPicture } from "./map-picture.js";
import { holesPart, placeOf, segmentTable, summary } from "./map-tables.js";
import { bytes, number } from "./numbers.js";

const REST_MODES = ["live", "age", "state"];

function factsOf(map, cell) {
  const more = `\`foxy store inspect --segment ${cell.slot}\` lists the records.`;
  if (!map.is_log) {
    const place = `Segment ${cell.slot}: ${cell.state}, ${placeOf(cell)}`;
    return cell.records > 0 ? `${place} ${more}` : place;
  }
  const log = map.areas[cell.log];
  if (cell.state === "free") return `Segment ${cell.slot}: free, in the ${log} log.`;
  return `Segment ${cell.slot}: ${cell.state}, number ${cell.sequence} of the ${log} log, `
    + `${number(cell.age)} newer segments, ${number(cell.records)} live records `
    + `(${bytes(cell.live)}). ${more}`;
}

// Returns the part of the page for a store.
function storePart(map, index) {
  const canvas = element("canvas", { class: "map", tabindex: "0", role: "application",
    "aria-label": "Map of the segments. The arrow keys choose a segment." });
  const picture = new MapPicture(canvas);
  const colours = new Colours(picture);
  const cells = cellsOf(map);
  const modes = modesOf(map, cells).filter(([value]) => REST_MODES.includes(value));
  const mode = element("select", { id: `mode-${index}` },
    modes.map(([value, text]) => element("option", { value }, text)));
  const legend = element("ul", { class: "legend" });
  const facts = element("p", { role: "status" }, "Point at a segment, or use the arrow keys.");
  let chosen = null;
  const draw = () => {
    colours.apply(mode.value, cells);
    picture.draw(cells, chosen, headings(map));
    show(legend, colours.legend(mode.value, map.is_log));
  };
  const choose = (cell) => {
    if (cell === null || !cells[cell]) return;
    chosen = cell;
    facts.textContent = factsOf(map, cells[cell]);
    draw();
  };
  canvas.addEventListener("pointermove", (event) =>
    choose(picture.at(event.offsetX, event.offsetY)));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: picture.columns,
      ArrowUp: -picture.columns }[event.key];
    if (!step) return;
    event.preventDefault();
    choose(chosen === null ? 0 : chosen + step);
  });
  mode.addEventListener("change", draw);
  window.addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  setTimeout(draw, 0);
  return element("section", {}, element("h2", {}, map.file), element("p", {}, summary(map, cells)),
    element("div", { class: "fields" },
      element("div", { class: "field" }, element("label", { for: mode.id }, "Colour by"), mode)),
    element("div", { class: "card" }, canvas, legend, facts),
    element("div", { class: "card" }, holesPart(map)),
    element("details", {}, element("summary", {}, "Table: segments"), segmentTable(map, cells)));
}

const maps = JSON.parse(document.getElementById("maps").textContent);
document.getElementById("content").append(...maps.map(storePart));
