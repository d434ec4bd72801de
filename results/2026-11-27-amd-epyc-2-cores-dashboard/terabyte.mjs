// Opens the disk map of a running foxy with Chromium, and prints what the page says, how many bytes
// it loads, and how long its longest task takes.
//
// usage: node terabyte.mjs ADMIN_URL SECONDS [PICTURE]

import { chromium } from "playwright-core";

const [admin, seconds, picture] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"],
});
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
const loaded = {};
page.on("pageerror", (error) => console.log(`fault: ${error.message}`));
page.on("response", async (answer) => {
  const { pathname } = new URL(answer.url());
  if (!pathname.startsWith("/data/")) return;
  const body = await answer.body().catch(() => "");
  loaded[pathname] ??= [];
  loaded[pathname].push(body.length);
});
await page.addInitScript(() => {
  globalThis.tasks = [];
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) globalThis.tasks.push(Math.round(task.duration));
  }).observe({ entryTypes: ["longtask"] });
});
await page.goto(`${admin}/#map`);
await page.waitForFunction(() => document.querySelector("canvas.map").width > 300);
await page.waitForTimeout(1000 * Number(seconds));
console.log(await page.textContent("#map p"));
for (const [path, sizes] of Object.entries(loaded)) {
  console.log(`${path}: ${sizes.length} answers, bytes ${sizes.join(" ")}`);
}
console.log(`tasks of 50 ms or more: ${await page.evaluate(() => globalThis.tasks.join(" ")) || "none"} ms`);
if (picture) await page.screenshot({ path: picture });
await browser.close();
