// The view of recent traffic: the top hosts, objects and clients, and sampled requests.

import { bar, breakable, element, show, table } from "./elements.js";
import { bytes, clock, duration, number, percent } from "./numbers.js";
import { classOf } from "./outcomes.js";

function topTable(caption, title, list, isUrl) {
  if (list.length === 0) return element("p", {}, "No requests since this page was opened.");
  const rows = list.map((one) => [
    isUrl ? element("a", { href: `#explain=${encodeURIComponent(one.name)}`,
      "data-key": `top ${one.name}` }, breakable(one.name)) : one.name,
    bar(one.share, percent(one.share)), percent(one.hits / Math.max(one.requests - one.excess, 1)),
    bytes(one.bytes)]);
  return table(caption, [{ title, class: "url" }, { title: "share of requests" },
    { title: "hit ratio", number: true }, { title: "bytes", number: true }], rows);
}

function requestTable(requests) {
  if (requests.length === 0) return element("p", {}, "No requests since this page was opened.");
  const rows = [...requests].reverse().slice(0, 25).map((one) => [clock(one.end_ms),
    element("span", { class: "nowrap" },
      element("span", { class: `swatch ${classOf(one.outcome)}` }), one.outcome),
    String(one.status || "none"),
    duration(one.elapsed_us), bytes(one.bytes),
    element("a", { href: `#explain=${encodeURIComponent(`${one.method} ${one.url}`)}`,
      "data-key": `request ${one.end_ms} ${one.url}` }, `${one.method} `, breakable(one.url)),
    one.cut ? `${one.cache_status} (${one.cut})` : one.cache_status, one.client]);
  return table("Sampled requests, newest first", [{ title: "ended" }, { title: "outcome" },
    { title: "status" }, { title: "duration", number: true }, { title: "bytes", number: true },
    { title: "request", class: "url" }, { title: "Cache-Status" }, { title: "client" }], rows);
}

export function trafficView() {
  const [note, hosts, objects, clients, requests] = [1, 2, 3, 4, 5].map(() => element("div"));
  const card = (title, place) => element("div", { class: "card quiet" },
    element("h3", {}, title), place);
  return {
    name: "traffic",
    title: "Traffic",
    content: element("div", {}, note,
      element("div", { class: "columns" }, card("Hosts", hosts), card("Clients", clients)),
      card("Objects", objects), card("Requests", requests)),
    update(looks) {
      const { traffic } = looks.at(-1);
      const each = traffic.sampled_each === 1 ? "foxy counts every request."
        : `foxy counts 1 of ${number(traffic.sampled_each)} requests.`;
      show(note, element("p", { class: "note" },
        `${each} Counting began when this page was opened. Old requests lose weight: `
        + "counts halve every minute. Follow a link to explain a URL."));
      show(hosts, topTable("Top hosts", "host", traffic.hosts, false));
      show(clients, topTable("Top clients", "client", traffic.clients, false));
      show(objects, topTable("Top objects", "URL", traffic.objects, true));
      show(requests, requestTable(traffic.requests));
    },
  };
}
