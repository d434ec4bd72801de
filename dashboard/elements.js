// Builds elements. All text is set as text and never parsed, because clients and origins choose
// host names and URLs.

const SVG = "http://www.w3.org/2000/svg";

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      made.setAttribute(name, value);
    }
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

// Returns a new HTML element. An attribute such as `onclick` adds a listener.
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

// Returns a new SVG element.
export function drawing(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

// Returns the parts of a URL, with a place to break the line after each slash.
export function breakable(url) {
  return url.split(/(?<=[^/:]\/)(?!\/)/).flatMap((part) => [part, element("wbr")]);
}

// Returns a table with a caption. `columns` has the heading of each column; a column with `number`
// is right-aligned. A cell is text, a number or an element.
export function table(caption, columns, rows) {
  const head = columns.map((column) =>
    element("th", { scope: "col", class: column.number ? "number" : null }, column.title));
  const body = rows.map((cells) => element("tr", {}, cells.map((cell, index) => {
    const kind = columns[index].number ? "number" : columns[index].class;
    const name = index === 0 ? "th" : "td";
    return element(name, { class: kind, scope: index === 0 ? "row" : null }, cell ?? "");
  })));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", {},
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, head)),
      element("tbody", {}, body)));
}

// Replaces the children of `place`, but keeps the keyboard focus and the scroll position if an
// element with the same `data-key` is still there.
export function show(place, ...children) {
  const active = document.activeElement;
  const key = place.contains(active) ? active.getAttribute("data-key") : null;
  const label = place.contains(active) ? active.getAttribute("aria-label") : null;
  const offsets = [...place.querySelectorAll(".scroll")].map((area) => area.scrollLeft);
  place.replaceChildren(...children.flat().filter(Boolean));
  [...place.querySelectorAll(".scroll")].forEach((area, index) => {
    area.scrollLeft = offsets[index] ?? 0;
  });
  const again = key ? `[data-key="${CSS.escape(key)}"]`
    : label ? `[aria-label="${CSS.escape(label)}"]` : null;
  if (again) place.querySelector(again)?.focus({ preventScroll: true });
}

// Returns a horizontal bar for a share from 0 to 1, with the share as text.
export function bar(share, text) {
  const inner = element("span", { class: "bar-fill" });
  inner.style.width = `${Math.round(Math.min(Math.max(share, 0), 1) * 100)}%`;
  return element("span", { class: "bar" }, element("span", { class: "bar-track" }, inner),
    element("span", { class: "bar-text" }, text));
}
