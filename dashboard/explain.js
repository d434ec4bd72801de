// The view that explains a request: each decision of foxy, from the head to the last byte.

import { element, show, table } from "./elements.js";
import { bytes, span } from "./numbers.js";
import { ask } from "./server.js";

function field(label, input, note) {
  return element("div", { class: "field" }, element("label", { for: input.id }, label), input,
    note ? element("span", { class: "note" }, note) : null);
}

function storedPart(stored) {
  if (!stored) return element("p", {}, "No response for this request is stored.");
  const place = stored.where === "memory" ? "in memory" : "on disk";
  return element("div", {},
    element("p", {}, `Stored ${place}: ${bytes(stored.length)}; age ${span(stored.age)}, `
      + `freshness lifetime ${span(stored.lifetime)}.`),
    element("pre", { tabindex: "0", "aria-label": "Header of the stored response" },
      stored.head.join("\n")));
}

function answerPart(answer) {
  const rows = answer.steps.map((step, index) =>
    [String(index + 1), step.says, step.rule, step.section]);
  return element("div", { class: "card" }, storedPart(answer.stored),
    table("Decisions in order", [{ title: "step" }, { title: "decision", class: "prose" },
      { title: "rule" }, { title: "standard" }], rows));
}

export function explainView() {
  const url = element("input", { id: "explain-url", type: "url", required: true,
    placeholder: "http://example.com/", spellcheck: "false" });
  const method = element("input", { id: "explain-method", value: "GET", size: "8" });
  const from = element("input", { id: "explain-from", placeholder: "127.0.0.1", size: "16" });
  const fields = element("textarea", { id: "explain-fields", rows: "2", spellcheck: "false",
    placeholder: "Accept-Language: de" });
  const result = element("div", { role: "status" });
  const explain = async () => {
    method.value = method.value.trim().toUpperCase() || "GET";
    const query = [`url=${encodeURIComponent(url.value)}`,
      `method=${encodeURIComponent(method.value)}`];
    if (from.value) query.push(`from=${encodeURIComponent(from.value)}`);
    for (const line of fields.value.split("\n").filter((text) => text.trim())) {
      query.push(`field=${encodeURIComponent(line)}`);
    }
    try {
      show(result, answerPart(await ask(`/explain?${query.join("&")}`)));
    } catch (refusal) {
      show(result, element("p", { class: "refused" }, refusal.message));
    }
  };
  const form = element("form", { class: "card", onsubmit: (event) => {
    event.preventDefault();
    explain();
  } }, field("URL", url), element("div", { class: "fields" }, field("Method", method),
    field("Client address", from)),
  field("Header fields, one per line", fields),
  element("button", { type: "submit" }, "Explain"));
  return {
    name: "explain",
    title: "Explain",
    content: element("div", {},
      element("p", {},
        "Shows how foxy would answer a request now. foxy does not contact the origin."),
      form, result),
    // `wanted` is a URL, or a method, a space and a URL.
    open(wanted) {
      if (!wanted) return;
      const [, verb, target] = /^(?:([A-Z]+) )?(.*)$/s.exec(wanted);
      url.value = target;
      method.value = verb ?? "GET";
      explain();
    },
  };
}
