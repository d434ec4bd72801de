// The view of the nodes that share one cache.

import { element, show, table } from "./elements.js";
import { duration, number, percent } from "./numbers.js";
import { ask } from "./server.js";

const REFRESH = 2000;

function state(node) {
  if (node.is_lost) return "lost";
  const standing = node.is_leaving ? "draining" : node.taken_part < 1 ? "joining" : "";
  if (node.is_own) return ["this node", standing].filter(Boolean).join(", ");
  if (standing) return standing;
  return node.differs ? "up, but settings differ" : "up";
}

function nodeTable(nodes) {
  return table("Nodes of the fleet", [{ title: "node" }, { title: "address" }, { title: "state" },
    { title: "share of keys", number: true }, { title: "requests in progress", number: true },
    { title: "p99 latency", number: true }],
  nodes.map((node) => [node.name, node.address, state(node), percent(node.share),
    number(node.load), node.p99_seconds === null ? "" : duration(node.p99_seconds * 1e6)]));
}

function counterTable(counters) {
  const rows = Object.entries(counters).map(([name, count]) => [name, number(count)]);
  return table("Requests between nodes", [{ title: "counter" }, { title: "count", number: true }],
    rows);
}

function ratio(value) {
  return value === null ? "" : percent(value);
}

function summaryTable({ purges, hit_ratio_here: here, hit_ratio_at_owners: atOwners }) {
  const rows = [["hits here", ratio(here)], ["hits at owners", ratio(atOwners)]];
  if (purges) {
    const mean = purges.mean_seconds === null ? "" : duration(purges.mean_seconds * 1e6);
    rows.push(["purges acknowledged", number(purges.acknowledged)],
      ["mean time until acknowledged", mean], ["purges failed", number(purges.failed)],
      ["lag in entries", purges.lag === null ? "engine away" : number(purges.lag)],
      ["lease", duration(purges.lease_seconds * 1e6)]);
  }
  return table("Hits and purges", [{ title: "figure" }, { title: "value", number: true }], rows);
}

export function fleetView() {
  const result = element("div");
  let asked = 0;
  const refresh = async () => {
    asked = Date.now();
    try {
      const facts = await ask("/data/fleet");
      const { nodes, counters } = facts;
      if (nodes === null) {
        show(result, element("p", { class: "note" }, "This foxy is not part of a fleet."));
        return;
      }
      show(result, element("div", { class: "card" }, nodeTable(nodes)),
        element("div", { class: "card" }, summaryTable(facts)),
        element("div", { class: "card quiet" }, counterTable(counters)));
    } catch (refusal) {
      show(result, element("p", { class: "refused" }, refusal.message));
    }
  };
  return {
    name: "fleet",
    title: "Fleet",
    content: result,
    open: refresh,
    update() {
      if (Date.now() - asked > REFRESH) refresh();
    },
  };
}
