// The view that purges stored responses, with a dry run before.

import { element, show } from "./elements.js";
import { counted, number } from "./numbers.js";
import { ask } from "./server.js";

const KINDS = [
  ["url", "one URL, with all its variants", "http://example.com/page"],
  ["prefix", "all URLs that start with a text", "http://example.com/images/"],
  ["site", "all responses of a host", "example.com"],
  ["tag", "responses with a word in Surrogate-Key or Cache-Tag", "product-17"],
  ["all", "all responses", ""],
];

export function purgeView() {
  const kind = element("select", { id: "purge-kind" },
    KINDS.map(([name, says]) => element("option", { value: name }, says)));
  const value = element("input", { id: "purge-value", spellcheck: "false", required: true });
  const hard = element("input", { id: "purge-hard", type: "checkbox" });
  const result = element("div", { role: "status" });
  const choose = () => {
    value.disabled = kind.value === "all";
    show(result);
    value.placeholder = KINDS.find(([name]) => name === kind.value)[2];
  };
  kind.addEventListener("change", choose);
  choose();
  const wanted = () => ({
    [kind.value]: kind.value === "all" ? true : value.value.trim(), hard: hard.checked,
  });
  const say = (text, kindOfText) => show(result, element("p", { class: kindOfText }, text));
  const send = async () => {
    const purge = wanted();
    try {
      const answer = await ask("/purge", purge);
      const what = purge.hard ? "removed" : "marked as stale";
      say(`Purge ${answer.number}: responses ${what}. A crash cannot undo the purge.`, "done");
    } catch (refusal) {
      say(refusal.message, "refused");
    }
  };
  const dryRun = async () => {
    if (!form.reportValidity()) return;
    try {
      const { objects } = await ask("/purge", { ...wanted(), "dry-run": true });
      say(objects.disk === null
        ? `This purge matches at least ${counted(objects.memory, "response")}: foxy counts those `
          + "in memory, but cannot count all on disk."
        : `This purge matches ${counted(objects.memory, "response")} in memory and `
          + `${number(objects.disk)} on disk.`,
      "done");
    } catch (refusal) {
      say(refusal.message, "refused");
    }
  };
  const words = element("p", {});
  const dialog = element("dialog", { "aria-labelledby": "purge-sure" },
    element("h3", { id: "purge-sure" }, "Purge?"), words,
    element("div", { class: "buttons" },
      element("button", { type: "button", class: "danger", onclick: () => {
        dialog.close();
        send();
      } }, "Purge"),
      element("button", { type: "button", onclick: () => dialog.close() }, "Cancel")));
  const form = element("form", { class: "card", onsubmit: (event) => {
    event.preventDefault();
    const what = KINDS.find(([name]) => name === kind.value)[1];
    words.textContent = `The purge ${hard.checked ? "removes" : "marks as stale"} ${what}`
      + (kind.value === "all" ? "." : `: ${value.value}`);
    dialog.showModal();
  } },
  element("div", { class: "field" }, element("label", { for: "purge-kind" }, "Purge"), kind),
  element("div", { class: "field" },
    element("label", { for: "purge-value" }, "URL, host or tag"), value),
  element("div", { class: "field check" }, hard, element("label", { for: "purge-hard" },
    "Hard purge: remove the responses. Otherwise foxy validates them at the origin before use.")),
  element("div", { class: "buttons" },
    element("button", { type: "button", onclick: dryRun }, "Dry run"),
    element("button", { type: "submit", class: "danger" }, "Purge…")));
  return {
    name: "purge",
    title: "Purge",
    content: element("div", {}, form, result, dialog),
  };
}
