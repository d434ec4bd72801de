// Drives each view of foxy's dashboard with Chromium, with traffic running: at three widths, light
// and dark. Fails if the console shows an error, axe finds a serious fault, a purge does not work,
// or the last live map or the map at rest differs from `foxy store inspect`.
//
// usage: npm install && node run.mjs FOXY [FOLDER FOR PICTURES]
// CHROMIUM names the browser, if it is not /usr/bin/chromium. DASHBOARD names a folder whose files
// replace the dashboard's files in the program. So a change is tested without a build.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { chromium } from "playwright-core";
import { Traffic, startFoxy, startOrigin } from "./traffic.mjs";

const WIDTHS = [390, 820, 1400];
const VIEWS = ["overview", "traffic", "map", "whatif", "objects", "explain", "purge", "settings"];
const HEIGHT = 900;

const [foxy, pictures] = process.argv.slice(2);
if (!foxy) throw new Error("usage: node run.mjs FOXY [FOLDER FOR PICTURES]");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "foxy-dashboard-"));
if (pictures) mkdirSync(pictures, { recursive: true });
const faults = [];

function check(holds, text) {
  if (!holds) faults.push(text);
}

// Opens an empty page.
async function open(browser, options) {
  const page = await browser.newPage(options);
  if (!process.env.DASHBOARD) return page;
  await page.route("**/dashboard/*", async (route) => {
    const file = join(process.env.DASHBOARD, basename(new URL(route.request().url()).pathname));
    const response = await route.fetch();
    await route.fulfill(existsSync(file) ? { response, body: readFileSync(file) } : { response });
  });
  return page;
}

// Prepares a view, as a person would.
async function use(page, view) {
  if (view === "map") {
    await page.waitForFunction(() => document.querySelector("canvas.map").width > 300);
    await page.focus("canvas.map");
    for (let step = 0; step < 9; step += 1) await page.keyboard.press("ArrowRight");
    await page.waitForTimeout(1200);
  } else if (view === "objects") {
    await page.fill("#objects-host", "shop");
    await page.click("#objects button[type=submit]");
    await page.waitForFunction(() => document.querySelectorAll("#objects tbody tr").length > 0);
  } else if (view === "explain") {
    await page.fill("#explain-url", "http://shop.example/item/2");
    await page.click("#explain button[type=submit]");
    await page.waitForSelector("#explain tbody tr");
  } else if (view === "settings") {
    await page.waitForSelector("#settings tbody tr");
  }
}

async function judge(page, name) {
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, impact, nodes }) =>
      `${impact} ${id}: ${nodes.slice(0, 3).map((node) => node.target.join(" ")).join("; ")}`);
  });
  for (const text of found) {
    const isSerious = /^(serious|critical)/.test(text);
    if (isSerious) faults.push(`${name}: ${text}`);
    else console.log(`  ${name}: ${text}`);
  }
  const isWide = await page.evaluate(() =>
    document.documentElement.scrollWidth > document.documentElement.clientWidth + 1);
  check(!isWide, `${name}: the page is wider than the screen`);
}

async function visit(browser, admin, width, scheme) {
  const page = await open(browser, {
    viewport: { width, height: HEIGHT }, colorScheme: scheme, bypassCSP: false,
  });
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) {
      faults.push(`${width} ${scheme}: console: ${message.text()}`);
    }
  });
  page.on("pageerror", (error) => faults.push(`${width} ${scheme}: ${error.stack}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(admin)) faults.push(`loads ${request.url()}`);
  });
  await page.goto(`${admin}/`);
  await page.waitForTimeout(width === WIDTHS.at(-1) ? 12_000 : 3_000);
  await page.evaluate(axe);
  for (const view of VIEWS) {
    await page.click(`nav a[href="#${view}"]`);
    await page.waitForTimeout(1200);
    const name = `${view}-${width}-${scheme}`;
    await use(page, view).catch((error) => faults.push(`${name}: ${error.message}`));
    await judge(page, name);
    if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
  }
  await page.close();
}

// Purges by keyboard alone.
async function purge(browser, admin) {
  const page = await open(browser);
  await page.goto(`${admin}/#purge`);
  await page.focus("#purge-value");
  await page.keyboard.type("http://shop.example/item/2");
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog[open]");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#purge .done", { timeout: 5000 }).catch((error) =>
    faults.push(`purge: ${error.message}`));
  await page.close();
}

// The page asks for the token, and shows data only with the right word.
async function unlock(browser, originPort) {
  const token = "a-word-of-many-letters";
  const locked = await startFoxy(foxy, join(folder, "locked"), originPort, { token });
  const page = await open(browser);
  try {
    await page.goto(`${locked.admin}/`);
    for (const word of ["another-word-of-letters", token]) {
      await page.waitForSelector("#token", { state: "visible" });
      check(await page.textContent("#health") === "Locked", "the page shows data without a token");
      await page.fill("#token", word);
      await page.keyboard.press("Enter");
      await page.waitForTimeout(500);
    }
    await page.waitForFunction(() => document.querySelector("#health").textContent === "Healthy");
  } catch (error) {
    faults.push(`token: ${error.message}`);
  } finally {
    await page.close();
    await locked.stop();
  }
}

// Shows the map of a scheme without a log, in which each size of records has a file.
async function showOtherScheme(browser, originPort) {
  const other = await startFoxy(foxy, join(folder, "other"), originPort, { scheme: "buddy" });
  const traffic = new Traffic(other.proxy);
  const page = await open(browser, { viewport: { width: WIDTHS[1], height: HEIGHT } });
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) faults.push(`buddy: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`buddy: ${error.stack}`));
  try {
    traffic.start();
    await page.waitForTimeout(4000);
    await page.goto(`${other.admin}/#map`);
    await page.waitForTimeout(3000);
    await page.evaluate(axe);
    await use(page, "map");
    await page.waitForSelector("#map tbody .url", { timeout: 5000 });
    const details = await page.textContent("#map");
    check(/of the file buddy\.d\//.test(details), `buddy: no file is named in ${details}`);
    await judge(page, "map-buddy");
    if (pictures) await page.screenshot({ path: join(pictures, "map-buddy.png") });
  } catch (error) {
    faults.push(`buddy: ${error.message}`);
  } finally {
    traffic.stop();
    await page.close();
    await other.stop();
  }
  return other.store;
}

// Returns the live map, once it no longer changes.
async function lastMap(admin) {
  let earlier = null;
  for (let tries = 0; tries < 60; tries += 1) {
    const map = await (await fetch(`${admin}/data/map?store=0`)).json();
    if (map.cells && map.time_ms !== earlier?.time_ms) {
      if (JSON.stringify(map.cells) === JSON.stringify(earlier?.cells)) return map;
      earlier = map;
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  faults.push("the live map still changes a minute after the last request");
  return earlier;
}

function read(command, store) {
  const json = execFileSync(foxy, ["store", command, store, "--json"], { maxBuffer: 1 << 28 });
  return JSON.parse(json).stores[0];
}

function compare(name, mapped, inspected) {
  check(inspected.segments.length === mapped.cells.length, `${name}: the map has other segments`);
  inspected.segments.forEach((segment, index) => {
    const [slot, state, , sequence, , , records] = mapped.cells[index];
    const isSame = slot === segment.segment && (sequence ?? null) === (segment.number ?? null)
      && records === segment.live_records
      && (mapped.states[state] === "free") === (segment.state === "free");
    check(isSame, `${name}: segment ${slot}: the map differs from inspect`);
  });
  return mapped.cells.length;
}

const origin = await startOrigin();
const running = await startFoxy(foxy, folder, origin.port);
const traffic = new Traffic(running.proxy);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"],
});
try {
  traffic.start();
  for (const scheme of ["light", "dark"]) {
    for (const width of WIDTHS) await visit(browser, running.admin, width, scheme);
  }
  await purge(browser, running.admin);
  await unlock(browser, origin.port);
  traffic.stop();
  const live = await lastMap(running.admin);
  await running.stop();
  console.log(`${compare("live", live, read("inspect", running.store))} live segments compared`);
  const other = await showOtherScheme(browser, origin.port);
  for (const [name, store] of [["at-rest", running.store], ["at-rest-buddy", other]]) {
    const count = compare(name, read("map", store), read("inspect", store));
    console.log(`${count} segments compared`);
    const file = join(folder, `${name}.html`);
    execFileSync(foxy, ["store", "map", store, "--html", file]);
    const page = await browser.newPage({ viewport: { width: 1000, height: 800 } });
    page.on("pageerror", (error) => faults.push(`${name}: ${error.message}`));
    await page.goto(`file://${file}`);
    await page.waitForTimeout(500);
    check((await page.textContent("main")).includes("of the space holds live data"), `${name}: no map`);
    if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
  }
} finally {
  traffic.stop();
  await browser.close();
  await running.stop();
  origin.close();
  rmSync(folder, { recursive: true, force: true });
}
console.log(`${traffic.answered} requests, ${faults.length} faults`);
faults.forEach((fault) => console.log(`fault: ${fault}`));
process.exit(faults.length > 0 ? 1 : 0);
