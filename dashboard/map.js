// The map of the stores: the segments on the disk, the write heads, the space under reclaim, the
// holes, and the last hour.

import { element, show, table } from "./elements.js";
import { Colours, cellsOf, headings, meaning, MODES, modesOf } from "./map-colours.js";
import { MapPicture } from "./map-picture.js";
import { holesPart, objectsTable, placeOf, segmentTable, summary } from "./map-tables.js";
import { bytes, clock, number, span } from "./numbers.js";
import { ask } from "./server.js";

const INTERVAL = 2000;
const HOVER_PAUSE = 250;
// Above this number of records, the page does not ask for the hosts of segments.
const MAX_RECORDS_FOR_HOSTS = 4e6;
const MAX_OBJECTS = 40;
// Time that a replay shows each snapshot, in milliseconds.
const FRAME = 150;

// Returns the cells of a snapshot. A snapshot has only states and levels.
function cellsOfSnapshot(history, snapshot, cells) {
  return [...snapshot.cells].map((code, index) => {
    const value = code.charCodeAt(0) - history.first_code;
    const share = (value % history.levels) / (history.levels - 1);
    return { log: 0, ...cells[index], state: history.states[Math.floor(value / history.levels)], share,
      strips: null };
  });
}

// Asks for the main host of a few segments whose host is unknown.
async function learn(colours, store, cells) {
  const unknown = cells.filter((cell) => cell.records > 0 && cell.state !== "open"
    && !colours.hosts.has(`${cell.slot}:${cell.sequence}`)).slice(0, 8);
  for (const cell of unknown) {
    const found = await ask(`/data/segment?store=${store}&segment=${cell.slot}&most=5`);
    const counts = new Map();
    for (const { url } of found.records) {
      const host = url?.split("/")[2];
      if (host) counts.set(host, (counts.get(host) ?? 0) + 1);
    }
    const [main] = [...counts].sort((a, b) => b[1] - a[1]);
    colours.hosts.set(`${cell.slot}:${cell.sequence}`, main?.[0] ?? null);
  }
}

// Returns how long ago a segment was begun, as far as the snapshots tell.
function writtenAgo(history, cell, now) {
  const first = history?.snapshots.find(({ next }) => next[cell.log] > cell.sequence);
  const last = history?.snapshots.at(-1);
  if (!last) return "recently";
  if (!first) return `less than ${span(Math.max((now - last.time_ms) / 1000, 1))} ago`;
  const text = span(Math.max((now - first.time_ms) / 1000, 30));
  return first === history.snapshots[0] ? `more than ${text} ago` : `about ${text} ago`;
}

// Returns a list to choose from, and the list with its label.
function choice(id, label, options) {
  const select = element("select", { id },
    options.map(([value, text]) => element("option", { value }, text)));
  return [select, element("div", { class: "field" }, element("label", { for: id }, label), select)];
}

class MapView {
  constructor() {
    this.canvas = element("canvas", { class: "map", tabindex: "0", role: "application",
      "aria-label": "Map of the segments. The arrow keys choose a segment." });
    this.picture = new MapPicture(this.canvas);
    this.colours = new Colours(this.picture);
    [this.mode, this.modeField] = choice("map-mode", "Colour by", MODES);
    [this.store, this.storeField] = choice("map-store", "Store", []);
    this.time = element("input", { id: "map-time", type: "range", min: "0", max: "0", value: "0" });
    this.timeLabel = element("label", { for: "map-time" }, "Time: now");
    this.play = element("button", { type: "button" }, "Replay the last hour");
    [this.about, this.legend, this.details, this.holes, this.rows] =
      ["p", "ul", "div", "div", "div"].map((name) => element(name));
    this.legend.className = "legend";
    this.segments = element("details", { ontoggle: () => this.drawTable() },
      element("summary", {}, "Table: segments"), this.rows);
    this.stores = null;
    this.forget();
    this.listen();
  }

  // Forgets the store, because another store was chosen.
  forget() {
    Object.assign(this, { map: null, cells: [], history: null, chosen: null, asked: 0 });
    this.colours.hosts.clear();
    show(this.details, element("p", {}, "Point at a segment, or use the arrow keys on the map."));
  }

  get content() {
    return element("div", {}, this.about,
      element("div", { class: "fields" }, this.storeField, this.modeField,
        element("div", { class: "field grow" }, this.timeLabel, this.time),
        element("div", { class: "field" }, this.play)),
      element("div", { class: "map-columns" },
        element("div", { class: "card" }, this.canvas, this.legend, this.segments),
        element("div", {}, element("div", { class: "card" }, this.details),
          element("div", { class: "card" }, this.holes))));
  }

  listen() {
    const point = (event) => this.choose(this.picture.at(event.offsetX, event.offsetY));
    this.canvas.addEventListener("pointermove", point);
    this.canvas.addEventListener("pointerdown", point);
    this.canvas.addEventListener("keydown", (event) => this.move(event));
    this.play.addEventListener("click", () => this.replay());
    this.time.addEventListener("input", () => this.draw());
    this.mode.addEventListener("change", () => this.draw());
    this.store.addEventListener("change", () => this.forget());
    window.addEventListener("resize", () => this.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  move(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.picture.columns,
      ArrowUp: -this.picture.columns }[event.key];
    if (!step) return;
    event.preventDefault();
    this.choose(this.chosen === null ? 0 : this.chosen + step);
  }

  choose(index) {
    if (index === null || index === this.chosen || !this.cells[index]) return;
    this.chosen = index;
    this.draw();
    this.tellSoon(HOVER_PAUSE);
  }

  tellSoon(pause) {
    clearTimeout(this.waiting);
    const index = this.chosen;
    this.waiting = setTimeout(() => this.tell(index).catch((refusal) =>
      show(this.details, element("p", { class: "refused" }, refusal.message))), pause);
  }

  // Tells what is at the chosen place, and why the objects there stay.
  async tell(index) {
    const cell = this.cells[index];
    const heading = element("h3", {}, `Segment ${cell.slot}: ${cell.state}`);
    const facts = [element("p", {}, meaning(this.map, cell))];
    if (!this.map.is_log) facts.push(element("p", {}, placeOf(cell)));
    else if (cell.state !== "free") facts.push(element("p", {}, this.factsOf(cell)));
    show(this.details, heading, facts);
    if (cell.records === 0) return;
    const found = await ask(
      `/data/segment?store=${this.store.value}&segment=${cell.slot}&most=${MAX_OBJECTS}`);
    if (this.chosen !== index) return;
    show(this.details, heading, facts, objectsTable(this.map, found));
  }

  factsOf(cell) {
    const log = this.map.areas[cell.log];
    const ages = this.cells.filter((one) => one.log === cell.log).map((one) => one.age);
    const older = Math.max(0, ...ages) - cell.age;
    return `Begun ${writtenAgo(this.history, cell, this.map.time_ms)}, as number `
      + `${number(cell.sequence)} of the ${log} log. ${number(cell.records)} live records, `
      + `${bytes(cell.live)}. foxy evicts ${number(older)} older segments of this log first.`;
  }

  // The cells to draw: of now, or of the chosen snapshot.
  shownCells() {
    const snapshot = this.history?.snapshots[Number(this.time.value)];
    const isNow = !snapshot || this.time.value === this.time.max;
    this.timeLabel.textContent = isNow ? "Time: now" : `Time: ${clock(snapshot.time_ms)}`;
    return isNow ? this.cells : cellsOfSnapshot(this.history, snapshot, this.cells);
  }

  draw() {
    if (!this.map) return;
    const cells = this.shownCells();
    const isPast = cells !== this.cells && this.mode.value !== "state";
    const mode = isPast ? "live" : this.mode.value;
    this.colours.apply(mode, cells);
    this.picture.draw(cells, this.chosen, headings(this.map));
    show(this.legend, this.colours.legend(mode, this.map.is_log));
  }

  drawTable() {
    if (this.segments.open) show(this.rows, segmentTable(this.map, this.cells));
  }

  async replay() {
    if (this.playing) return this.stop();
    await this.lookBack();
    this.time.value = "0";
    this.play.textContent = "Stop";
    this.playing = setInterval(() => {
      this.time.value = String(Number(this.time.value) + 1);
      if (this.time.value === this.time.max) this.stop();
      this.draw();
    }, FRAME);
    return this.draw();
  }

  stop() {
    clearInterval(this.playing);
    this.playing = null;
    this.play.textContent = "Replay the last hour";
  }

  async look() {
    const store = this.store.value;
    const map = await ask(`/data/map?store=${store}&after=${this.map?.time_ms ?? 0}`);
    if (!map.cells || store !== this.store.value) return;
    const before = this.cells[this.chosen];
    this.map = map;
    this.cells = cellsOf(map);
    const now = this.cells[this.chosen];
    if (before && now && (before.state !== now.state || before.sequence !== now.sequence)) {
      this.tellSoon(0);
    }
    this.offerModes();
    this.about.textContent = summary(map, this.cells);
    show(this.holes, holesPart(map));
    this.drawTable();
    this.draw();
  }

  // Offers the colourings that make sense for the store.
  offerModes() {
    const modes = modesOf(this.map, this.cells);
    const values = modes.map(([value]) => value);
    if (values.join() === [...this.mode.options].map((option) => option.value).join()) return;
    const { value } = this.mode;
    this.mode.replaceChildren(...modes.map(([one, text]) =>
      element("option", { value: one }, text)));
    this.mode.value = values.includes(value) ? value : "live";
  }

  async lookBack() {
    const isAtEnd = this.time.value === this.time.max;
    const store = this.store.value;
    const earlier = this.history?.snapshots ?? [];
    const history =
      await ask(`/data/map-history?store=${store}&after=${earlier.at(-1)?.time_ms ?? 0}`);
    if (store !== this.store.value) return;
    history.snapshots = [...earlier, ...history.snapshots].slice(-history.most);
    this.history = history;
    this.time.max = String(this.history.snapshots.length);
    if (isAtEnd) this.time.value = this.time.max;
  }

  async learnHosts() {
    const records = this.cells.reduce((sum, cell) => sum + cell.records, 0);
    if (records > MAX_RECORDS_FOR_HOSTS) return;
    await learn(this.colours, this.store.value, this.cells);
    this.draw();
  }

  // Lists the stores that have a map. Returns whether there are any.
  setStores(stores) {
    const mapped = stores.map((one, index) => [index, one]).filter(([, one]) => one.has_map);
    const names = mapped.map(([, one]) => one.folder).join("\n");
    if (names !== this.stores) {
      this.stores = names;
      this.store.replaceChildren(...mapped.map(([index, one]) =>
        element("option", { value: String(index) }, one.folder)));
      this.storeField.hidden = mapped.length < 2;
    }
    return mapped.length > 0;
  }

  async update(looks) {
    if (!this.setStores(looks.at(-1).stores)) {
      this.about.textContent = "There is no map, because the storage schemes in use keep each "
        + "object in a file of its own, or store nothing.";
      return;
    }
    if (this.isAsking || Date.now() - this.asked < INTERVAL) return;
    this.asked = Date.now();
    this.isAsking = true;
    try {
      await this.look();
      if (!this.playing) await this.lookBack();
      if (this.mode.value === "host") await this.learnHosts();
    } catch (refusal) {
      this.about.textContent = refusal.message;
    } finally {
      this.isAsking = false;
    }
  }
}

export function mapView() {
  const view = new MapView();
  return { name: "map", title: "Disk map", content: view.content,
    update: (looks) => view.update(looks) };
}
