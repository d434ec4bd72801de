// The view of stored objects: a search by host and path, in memory or in a store.

import { breakable, element, show, table } from "./elements.js";
import { bytes, counted, number, percent, requestsUpTo3, span } from "./numbers.js";
import { ask } from "./server.js";

// The search pauses after this number of objects.
const AT_ONCE = 100;

function objectRow(object, now) {
  const age = object.received_ms ? span((now - object.received_ms) / 1000) : "";
  const left = object.expires_ms ? (object.expires_ms - now) / 1000 : null;
  const fresh = object.purge === "removed" ? "purged" : left === null ? ""
    : left > 0 ? span(left) : "stale";
  const size = object.stored < object.length
    ? `${bytes(object.stored)} of ${bytes(object.length)}` : bytes(object.length);
  const kind = object.variant ? "variant" : object.partial ? "partial" : "";
  return [element("a", { href: `#explain=${encodeURIComponent(object.url)}` },
    breakable(object.url)), kind,
    String(object.status ?? ""), size, age, fresh, requestsUpTo3(object.uses)];
}

export function objectsView() {
  const place = element("select", { id: "objects-place" },
    element("option", { value: "" }, "memory"));
  const host = element("input", { id: "objects-host", spellcheck: "false",
    placeholder: "example.com" });
  const path = element("input", { id: "objects-path", spellcheck: "false",
    placeholder: "/images/" });
  const progress = element("p", { role: "status" });
  const result = element("div");
  const more = element("button", { type: "button", hidden: true }, "Find more");
  const state = { found: [], from: 0, run: 0, stores: "", unread: 0, now: Date.now() };
  const draw = () => show(result, state.found.length > 0 && table("Stored objects", [
    { title: "URL", class: "url" }, { title: "kind" }, { title: "status" },
    { title: "size", number: true }, { title: "age", number: true },
    { title: "fresh for", number: true }, { title: "requests", number: true },
  ], state.found.map((object) => objectRow(object, state.now))));
  const say = (share, isDone) => {
    const left = state.unread ? ` ${counted(state.unread, "large record")} skipped.` : "";
    progress.textContent = `${counted(state.found.length, "object")} found; `
      + `${isDone ? "search complete" : `${percent(share)} searched`}.${left}`;
  };
  const search = async () => {
    const run = state.run + 1;
    state.run = run;
    const wanted = state.found.length + AT_ONCE;
    more.hidden = true;
    try {
      while (state.from !== null && state.found.length < wanted) {
        const query = `store=${place.value}&host=${encodeURIComponent(host.value.trim())}`
          + `&path=${encodeURIComponent(path.value.trim())}&from=${state.from}`;
        const answer = await ask(`/data/objects?${query}`);
        if (run !== state.run) return;
        state.found.push(...answer.objects);
        state.from = answer.next;
        state.unread += answer.unread;
        draw();
        say(answer.searched, state.from === null);
      }
      more.hidden = state.from === null;
    } catch (refusal) {
      progress.textContent = refusal.message;
    }
  };
  more.addEventListener("click", search);
  const form = element("form", { class: "card", onsubmit: (event) => {
    event.preventDefault();
    Object.assign(state, { found: [], from: 0, unread: 0 });
    search();
  } }, element("div", { class: "fields" },
    element("div", { class: "field" }, element("label", { for: "objects-place" }, "Search in"),
      place),
    element("div", { class: "field" }, element("label", { for: "objects-host" }, "Host contains"),
      host),
    element("div", { class: "field" }, element("label", { for: "objects-path" }, "Path contains"),
      path),
    element("div", { class: "field" }, element("button", { type: "submit" }, "Search"))));
  return {
    name: "objects",
    title: "Objects",
    content: element("div", {}, form, element("p", { class: "note" },
      "Purged objects stay in the list until foxy replaces them."), progress, result, more),
    update(looks) {
      const { stores, now_ms: now } = looks.at(-1);
      state.now = now;
      const names = stores.map((store) => store.folder).join("\n");
      if (names === state.stores) return;
      state.stores = names;
      const [memory] = place.options;
      place.replaceChildren(memory, ...stores.map((store, index) => [store, index])
        .filter(([store]) => store.has_map)
        .map(([store, index]) => element("option", { value: String(index) }, store.folder)));
      if (stores.length > 0) place.value = place.options[place.options.length - 1].value;
    },
  };
}
