// Starts the dashboard: the list of views, the token, and the questions to the server each second.

import { element } from "./elements.js";
import { span } from "./numbers.js";
import { ask, setToken } from "./server.js";
import { explainView } from "./explain.js";
import { fleetView } from "./fleet.js";
import { mapView } from "./map.js";
import { objectsView } from "./objects.js";
import { overviewView } from "./overview.js";
import { purgeView } from "./purge.js";
import { settingsView } from "./settings.js";
import { trafficView } from "./traffic.js";
import { whatIfView } from "./whatif.js";

const SECOND = 1000;
const LONGEST_PAUSE = 10 * SECOND;
// Number of seconds that the charts show.
const KEPT = 300;

const content = document.getElementById("content");
const health = document.getElementById("health");
const pause = document.getElementById("pause");
// The last answers of the server, oldest first.
const looks = [];
let isPaused = false;
let failures = 0;
let current = null;

const views = [overviewView(), trafficView(), mapView(), fleetView(), whatIfView(), objectsView(),
  explainView(), purgeView(), settingsView()];

// Adds a section and a link for each view.
function build() {
  const list = document.getElementById("views");
  for (const view of views) {
    view.section = element("section", {
      id: view.name, "aria-labelledby": `${view.name}-title`, hidden: true,
    }, element("h2", { id: `${view.name}-title` }, view.title), view.content);
    content.append(view.section);
    view.link = element("a", { href: `#${view.name}` }, view.title);
    list.append(element("li", {}, view.link));
  }
}

// Shows the view that the address names after `#`. The part after `=` is the view's argument.
function route() {
  const [name, ...rest] = location.hash.slice(1).split("=");
  current = views.find((view) => view.name === name) ?? views[0];
  for (const view of views) {
    view.section.hidden = view !== current;
    if (view === current) view.link.setAttribute("aria-current", "page");
    else view.link.removeAttribute("aria-current");
  }
  document.title = `${current.title} – foxy`;
  scrollTo(0, 0);
  current.open?.(decoded(rest.join("=")));
  if (looks.length > 0) current.update?.(looks);
}

/** Returns the text of the address after the name of a view. A wrong escape stays as it is. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function say(text, kind) {
  if (health.textContent !== text) health.textContent = text;
  health.className = kind;
}

function sayHealth(look) {
  const troubles = look.troubles;
  document.getElementById("version").textContent =
    `${look.version}, up ${span((look.now_ms - look.started_ms) / 1000)}`;
  if (troubles.length === 0) say("Healthy", "good");
  else say(`${troubles.length > 1 ? `${troubles.length} troubles: ` : ""}${troubles[0]}`, "bad");
}

function askForToken(text) {
  document.getElementById("token-view").hidden = false;
  document.getElementById("token-error").textContent = text;
  say("Locked", "bad");
}

async function look() {
  const answer = await ask("/data/live");
  document.getElementById("token-view").hidden = true;
  looks.push(answer);
  if (looks.length > KEPT) looks.shift();
  sayHealth(answer);
  current.update?.(looks);
}

async function poll() {
  if (!isPaused && !document.hidden) {
    try {
      await look();
      failures = 0;
    } catch (refusal) {
      failures += 1;
      if (refusal.status === 401) askForToken(failures > 1 ? refusal.message : "");
      else say(refusal.message, "bad");
      if (refusal.status === 401) return;
    }
  }
  setTimeout(poll, Math.min(SECOND * 2 ** failures, LONGEST_PAUSE));
}

pause.addEventListener("click", () => {
  isPaused = !isPaused;
  pause.setAttribute("aria-pressed", String(isPaused));
  pause.textContent = isPaused ? "Paused" : "Pause";
});
document.getElementById("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(document.getElementById("token").value);
  poll();
});
window.addEventListener("hashchange", route);
build();
route();
poll();
