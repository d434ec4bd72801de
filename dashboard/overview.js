// The first view: rates, ratios, latencies, memory, disk and the last errors.

import { TimeChart } from "./charts.js";
import { element, show, table } from "./elements.js";
import { histogram } from "./histogram.js";
import { bytes, clock, duration, number, percent } from "./numbers.js";
import { GROUPS, grown as grownOutcomes, quantile, total } from "./outcomes.js";

// Number of seconds over which the tiles compute rates and ratios.
const WINDOW = 60;

// Returns the differences of two answers: rates for each second, and ratios.
function compare(earlier, later) {
  const seconds = Math.max((later.now_ms - earlier.now_ms) / 1000, 0.001);
  const grown = (name) => Math.max(later.counters[name] - earlier.counters[name], 0);
  const outcomes = grownOutcomes(earlier, later);
  const requests = total(outcomes);
  const sent = grown("client_sent_bytes");
  const received = grown("origin_received_bytes");
  // Bodies of requests that the cache could answer: no tunnels, no answers of foxy itself.
  const [cacheableSent, fetched] = ["client_cacheable_bytes", "origin_cacheable_bytes"].map(grown);
  const hits = total(outcomes, (one) => one.is_hit);
  const cacheable = total(outcomes, (one) => one.is_cacheable);
  const cpu = later.cpu_seconds - earlier.cpu_seconds;
  return {
    seconds,
    requests,
    rate: requests / seconds,
    hitRatio: cacheable ? hits / cacheable : NaN,
    byteHitRatio: cacheableSent ? Math.max(1 - fetched / cacheableSent, 0) : NaN,
    sent: sent / seconds,
    received: received / seconds,
    saved: Math.max(cacheableSent - fetched, 0),
    cpuEach: requests ? (cpu * 1e6) / requests : NaN,
    cpuShare: cpu / seconds,
    outcomes,
    groups: GROUPS.map((group) =>
      total(outcomes, ({ name }) => group.outcomes.includes(name)) / seconds),
  };
}

const START = {
  now_ms: 0, cpu_seconds: 0, outcomes: [], counters: new Proxy({}, { get: () => 0 }),
};

function tile(name) {
  const value = element("strong", {});
  const note = element("span", { class: "note" });
  return { root: element("div", { class: "tile" }, element("span", {}, name), value, note),
    set(text, more) {
      value.textContent = text;
      note.textContent = more;
    } };
}

const TILES = ["Requests", "Hit ratio", "Byte hit ratio", "Origin traffic saved", "CPU per request",
  "Memory", "Disk", "Connections"];

function setTiles(tiles, recent, all, look) {
  const measure = (name) => look.stores.reduce((sum, store) => sum + store.measures[name], 0);
  tiles[0].set(`${number(recent.rate)}/s`, `${number(all.requests)} since foxy started`);
  tiles[1].set(percent(recent.hitRatio), `${percent(all.hitRatio)} since foxy started`);
  tiles[2].set(percent(recent.byteHitRatio), `${percent(all.byteHitRatio)} since foxy started`);
  tiles[3].set(`${bytes(recent.saved / recent.seconds)}/s`,
    `${bytes(all.saved)} since foxy started`);
  tiles[4].set(duration(recent.cpuEach), `${percent(recent.cpuShare)} of one CPU`);
  tiles[5].set(bytes(look.resident_bytes),
    `cache: ${bytes(look.memory.bytes)} of ${bytes(look.memory.limit)}`);
  tiles[6].set(look.stores.length ? bytes(measure("live_bytes")) : "none",
    `of ${bytes(measure("capacity_bytes"))}; ${number(measure("records"))} records`);
  tiles[7].set(number(look.connections.open), `limit: ${number(look.connections.limit)}`);
}

function latencyTable(outcomes) {
  const rows = outcomes.filter(({ count }) => count > 0).map((one) => [one.name,
    duration(quantile(one, 0.5)), duration(quantile(one, 0.99)), number(one.count),
    histogram(one)]);
  if (rows.length === 0) return element("p", {}, `No requests in the last ${WINDOW} seconds.`);
  return table(`Latency by outcome, last ${WINDOW} seconds`, [{ title: "outcome" },
    { title: "median", number: true }, { title: "p99", number: true },
    { title: "requests", number: true },
    { title: element("span", { class: "picture" }, "distribution"), class: "picture" }], rows);
}

function errorTable(look) {
  const rows = [...look.traffic.errors].reverse().slice(0, 20).map((one) => [clock(one.end_ms),
    String(one.status), one.reason ?? "origin", one.url, one.client,
    one.says ?? "the origin answered with this status"]);
  if (rows.length === 0) return element("p", {}, "No errors since foxy started.");
  return table("Last errors, newest first", [{ title: "time" }, { title: "status" },
    { title: "reason" }, { title: "URL", class: "url" }, { title: "client" },
    { title: "meaning", class: "prose" }], rows);
}

function storeTable(look) {
  if (look.stores.length === 0) {
    return element("p", {}, "foxy has no store and keeps responses in memory only.");
  }
  const rows = look.stores.map((store) => {
    const { live_bytes, capacity_bytes, records, index_bytes, device_errors } = store.measures;
    const state = store.out_of_use ? "out of use" : store.status;
    return [element("span", { class: "folder" }, store.folder), state,
      percent(live_bytes / capacity_bytes), number(records), bytes(index_bytes),
      number(device_errors)];
  });
  return table("Stores", [{ title: "folder" }, { title: "state" },
    { title: "used", number: true }, { title: "records", number: true },
    { title: "index memory", number: true }, { title: "disk errors", number: true }], rows);
}

export function overviewView() {
  const tiles = TILES.map(tile);
  const requests = new TimeChart("Requests by outcome", GROUPS, (value) => `${number(value)}/s`);
  const traffic = new TimeChart("Traffic", [{ name: "to clients", class: "memory" },
    { name: "from origins", class: "fetched" }], (value) => `${bytes(value)}/s`,
  { stacks: false, base: 1024 });
  const [troubles, latencies, stores, errors] = [1, 2, 3, 4].map(() => element("div"));
  return {
    name: "overview",
    title: "Overview",
    content: element("div", {}, troubles,
      element("div", { class: "tiles" }, tiles.map((one) => one.root)),
      element("p", { class: "note" }, `Rates, ratios and CPU are averages of the last ${WINDOW} `
        + "seconds. Memory, disk and connections are current values."),
      element("div", { class: "columns" }, requests.root, traffic.root),
      element("div", { class: "columns" },
        element("div", { class: "card" }, element("h3", {}, "Latency"), latencies),
        element("div", { class: "card" }, element("h3", {}, "Disk"), stores)),
      element("div", { class: "card" }, element("h3", {}, "Errors"), errors)),
    update(looks) {
      const look = looks.at(-1);
      const since = looks.find((one) => look.now_ms - one.now_ms <= WINDOW * 1000);
      const recent = compare(since, look);
      setTiles(tiles, recent, compare({ ...START, now_ms: look.started_ms }, look), look);
      const points = looks.slice(1).map((later, index) =>
        ({ time: later.now_ms, rates: compare(looks[index], later) }));
      requests.draw(points.map(({ time, rates }) => ({ time, values: rates.groups })));
      traffic.draw(points.map(({ time, rates }) =>
        ({ time, values: [rates.sent, rates.received] })));
      show(troubles, look.troubles.length > 0 && element("div", { class: "card warning" },
        element("h3", {}, "Troubles"),
        element("ul", {}, look.troubles.map((text) => element("li", {}, text)))));
      show(latencies, latencyTable(recent.outcomes), element("p", { class: "note" },
        "Each bar counts the requests in a range of latencies: up to 16 µs, up to 32 µs, up to "
        + "64 µs and so on; the last bar counts requests above 67 s."));
      show(stores, storeTable(look));
      show(errors, errorTable(look));
    },
  };
}
