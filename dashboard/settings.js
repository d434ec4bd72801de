// The view of all settings in force, with their sources and documentation.

import { element, show, table } from "./elements.js";
import { ask } from "./server.js";

const COLUMNS = [{ title: "setting" }, { title: "value", class: "value" }, { title: "source" },
  { title: "meaning", class: "prose" }];

function row(setting) {
  const value = setting.value ?? `(${setting.default})`;
  const notes = [setting.flag ? `--${setting.flag}` : null,
    setting.reload ? "can be reloaded" : "needs a restart"].filter(Boolean).join("; ");
  return [element("code", {}, setting.key), element("code", {}, value), setting.source,
    element("span", {}, setting.doc.replaceAll("`", ""), element("span", { class: "note" },
      ` (${notes})`))];
}

export function settingsView() {
  const filter = element("input", { id: "settings-filter", type: "search", spellcheck: "false" });
  const changed = element("input", { id: "settings-changed", type: "checkbox" });
  const result = element("div");
  let all = null;
  const draw = () => {
    if (!all) return;
    const word = filter.value.trim().toLowerCase();
    const chosen = all.settings.filter((setting) =>
      (!changed.checked || setting.source !== "default")
      && `${setting.key} ${setting.value} ${setting.doc}`.toLowerCase().includes(word));
    const chapters = [...new Set(chosen.map((setting) => setting.chapter))];
    const parts = chapters.map((chapter) => element("div", { class: "card quiet" },
      element("h3", {}, chapter), table(chapter, COLUMNS,
        chosen.filter((setting) => setting.chapter === chapter).map(row))));
    const fits = (one) => `${one.name} ${one.text}`.toLowerCase().includes(word);
    const lists = [["Rules", all.rules.filter(fits)], ["Origins", all.origins.filter(fits)]];
    const tables = lists.filter(([, list]) => list.length > 0).map(([title, list]) =>
      element("div", { class: "card quiet" }, element("h3", {}, title),
        table(title, [{ title: "name" }, { title: "keys", class: "value" }],
          list.map((one) => [one.name, element("code", {}, one.text)]))));
    const file = all.file ? `Configuration file: ${all.file}.` : "foxy read no configuration file.";
    show(result, element("p", {}, `${file} Settings shown: ${chosen.length}.`), parts, tables);
  };
  filter.addEventListener("input", draw);
  changed.addEventListener("change", draw);
  return {
    name: "settings",
    title: "Settings",
    content: element("div", {},
      element("div", { class: "fields" },
        element("div", { class: "field" }, element("label", { for: "settings-filter" }, "Search"),
          filter),
        element("div", { class: "field check" }, changed,
          element("label", { for: "settings-changed" }, "Only settings with a given value"))),
      result),
    async open() {
      try {
        all = await ask("/data/settings");
        draw();
      } catch (refusal) {
        show(result, element("p", { class: "refused" }, refusal.message));
      }
    },
  };
}
