// Drives the page in headless Chromium:
// node browser.mjs URL TOKEN PICTURES CHROMIUM BAD_NAME
// Prints "ok WHAT" for each check, "figure WHAT" for each figure, and anything else for a failure.
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [url, token, pictures, executablePath, badName] = process.argv.slice(2);
const require = createRequire(path.join(process.cwd(), "browser.cjs"));
const { chromium } = require("playwright-core");

const check = (is, what) => console.log(`${is ? "ok" : "FAILED"} ${what}`);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--enable-precise-memory-info"] });
const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, colorScheme: "light" });
const page = await context.newPage();
const errors = [];
const foreign = [];
let dialogs = 0;
page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
page.on("pageerror", (error) => errors.push(error.message));
page.on("request", (request) => { if (!request.url().startsWith(url)) foreign.push(request.url()); });
page.on("dialog", (dialog) => { dialogs += 1; dialog.accept(); });

const name = () => page.textContent("#name");
const choose = (label) => page.locator("#list li", { has: page.locator(".label", { hasText: label }) }).first().click();
const plotted = (id, least) => page.waitForFunction(
  ([id, least]) => (window.weirPage.charts[id]?.data[0].length ?? 0) >= least, [id, least]);

/// Counts the pixels of a color in the row of the chart where a value is, within two pixels.
const pixelsAt = (id, value, property) => page.evaluate(([id, value, property]) => {
  const plot = window.weirPage.charts[id];
  const y = Math.round(plot.valToPos(value, "y", true));
  const { left, width } = plot.bbox;
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(property).trim();
  probe.fillRect(0, 0, 1, 1);
  const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
  let most = 0;
  for (let row = y - 2; row <= y + 2; row += 1) {
    const { data } = plot.ctx.getImageData(left, row, width, 1);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) {
      const near = Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 90;
      if (near && data[i + 3] > 100) count += 1;
    }
    most = Math.max(most, count);
  }
  return { most, width };
}, [id, value, property]);

try {
  await page.goto(url);
  await plotted("iops", 12);
  const load = await page.evaluate(() => performance.getEntriesByType("navigation")[0].loadEventEnd);
  console.log(`figure page loaded in ${Math.round(load)} ms`);
  check((await page.locator("#list li").count()) === 201, "the list has the host and 200 volumes");
  check((await name()) === "data", "the first volume is selected");
  for (const id of ["iops", "bytes", "latency", "waits", "depth"]) {
    await plotted(id, 12);
    const some = await page.evaluate((id) => window.weirPage.charts[id].data.slice(1).some((own) => own.some((y) => y > 0)), id);
    check(some, `chart ${id} has data`);
  }
  check((await page.textContent("#verdict")).startsWith("data is throttled by disk_iops"), "the verdict names the cap");

  const clients = await page.locator("#clients tbody tr").allTextContents();
  check(clients.length === 2 && clients[0].startsWith(badName) && clients[0].includes("400")
    && clients[1].startsWith("127.0.0.1:50000data100"), `each client has its rates (${clients})`);

  await page.selectOption("#window", "120");
  await plotted("iops", 14);
  const cap = await pixelsAt("iops", 500, "--limit");
  const beside = await pixelsAt("iops", 560, "--limit");
  const drawn = await page.evaluate(() => {
    const { data, scales } = window.weirPage.charts.iops;
    return (data[0][data[0].length - 1] - data[0][0]) / (scales.x.max - scales.x.min);
  });
  check(cap.most >= 0.3 * drawn * cap.width && cap.most > 3, `a dashed line is at the limit of 500 (${cap.most} pixels)`);
  check(beside.most === 0, "and none beside it");
  check((await page.textContent("#chart-iops .legend")).includes("limit disk_iops 500"), "the legend has the limit");
  await page.screenshot({ path: path.join(pictures, "live-light.png"), fullPage: true });

  await page.fill("#token", "wrong");
  await page.fill("#tier", "P40");
  await page.click("button[data-action=set-tier]");
  await page.waitForFunction(() => document.getElementById("answer").textContent.includes("not the token"));
  check((await page.textContent("#facts")).includes("tier P10"), "a wrong token changes nothing");
  await page.fill("#token", token);
  await page.fill("#tier", "P99");
  await page.click("button[data-action=set-tier]");
  await page.waitForFunction(() => document.getElementById("answer").textContent.includes("unknown tier <b>P99</b>"));
  check((await page.locator("#answer b").count()) === 0, "a refusal is shown as text");
  await page.fill("#tier", "P40");
  const start = Date.now();
  await page.click("button[data-action=set-tier]");
  await page.waitForFunction(() => document.getElementById("facts").textContent.includes("tier P40")
    && document.querySelector("#chart-iops .legend").textContent.includes("limit disk_iops 7,500"));
  console.log(`figure tier change shown after ${Date.now() - start} ms`);
  check(true, "a tier change shows, with its limit");
  const told = await page.textContent("#events");
  check(told.includes("data: tier P40, was P10") && told.includes("asked for on a page"), "and is an event");
  await page.click("#crash");
  await page.waitForFunction(() => document.getElementById("events").textContent.includes("host: crashed"));
  check(dialogs === 1, "a crash is asked for, and is an event");

  await choose("volume-3");
  await page.waitForFunction(() => document.getElementById("facts").textContent
    .includes("backend nbd://far/ lost: no answer for <b>30 s</b>"));
  check((await page.locator("#facts b").count()) === 0, "the state of a backend is a fact, as text");
  check((await page.textContent("#verdict")).startsWith("The backend of volume-3 is lost"), "the sentence begins with it");
  check((await page.textContent("#events")).includes("volume-3: backend lost: no answer"), "and it is an event");
  check((await page.textContent("#list [aria-selected=true] .now")) === "backend lost", "the list marks the volume");
  check((await page.textContent("#list [aria-selected=true]")).includes("volume-3"), "it is that one");

  await choose("log");
  await page.waitForFunction(() => document.querySelector("#chart-credits .note").textContent.includes("at the present rate"));
  check((await name()) === "log", "credits have the time until they run out");
  await page.screenshot({ path: path.join(pictures, "live-credits.png") });

  dialogs = 0;
  await choose(badName);
  await plotted("iops", 2);
  check((await name()) === badName, "a bad name is text");
  check(await page.evaluate(() => window.hacked === undefined && document.querySelector("#list img, #list script") === null), "and runs nothing");
  check(dialogs === 0, "and opens nothing");

  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save")]);
  const file = path.join(pictures, "saved.html");
  await download.saveAs(file);
  check(/^weir-_script_[\w-]+Z\.html$/.test(download.suggestedFilename()), `a page is saved as ${download.suggestedFilename()}`);
  const saved = await context.newPage();
  const asked = [];
  saved.on("request", (request) => { if (!/^(file|data):/.test(request.url())) asked.push(request.url()); });
  saved.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
  await saved.goto(pathToFileURL(file).href);
  check((await saved.textContent("#name")) === badName && (await saved.locator("script, button, input").count()) === 0, "it has the name as text, and no scripts");
  check((await saved.textContent("#state")).startsWith("saved ") && asked.length === 0, "it says when, and loads nothing");
  const pictured = await saved.evaluate(() => [...document.querySelectorAll("figure:not([hidden]) .plot img")].filter((own) => own.naturalWidth > 100 && own.clientWidth > 100).length);
  check(pictured >= 4, `it has the charts as pictures (${pictured})`);
  check((await saved.locator("#chart-iops tbody tr").count()) >= 2 && (await saved.locator("#list li").count()) === 201, "and as tables, and the list");
  await saved.screenshot({ path: path.join(pictures, "saved.png") });
  await saved.close();

  await page.focus("#list");
  await page.keyboard.press("ArrowDown");
  check((await name()) === "volume-3", "the arrow keys choose a volume");
  await page.keyboard.press("End");
  check((await name()) === "volume-199", "and the last one");
  const active = await page.evaluate(() => document.getElementById(document.getElementById("list").getAttribute("aria-activedescendant")).textContent);
  check(active.startsWith("volume-199"), "which is the active option");
  await page.fill("#filter", "volume-12");
  check((await page.locator("#list li").count()) === 11, "the filter leaves 11 volumes");
  await page.fill("#filter", "");
  await page.selectOption("#order", "iops");
  await page.waitForFunction(() => document.querySelector("#list li .label").textContent === "host");
  const second = () => document.querySelectorAll("#list li .label")[1].textContent === "volume-199";
  const first = await page.waitForFunction(second, null, { timeout: 15000 }).then(() => true, () => false);
  check(first, "the busiest come first");
  for (const landmark of ["header", "nav[aria-label]", "main", "h1", "label[for=filter]"]) {
    check((await page.locator(landmark).count()) >= 1, `there is a ${landmark}`);
  }
  const labelled = await page.evaluate(() => [...document.querySelectorAll("figure:not([hidden]) [role=img]")].every((own) => own.getAttribute("aria-label")?.length > 10));
  check(labelled, "each chart has its figures as a label");
  check((await page.locator("#figures tbody tr").count()) >= 10, "the present figures are a table");

  await page.selectOption("#order", "layout");
  await choose("data");
  await page.emulateMedia({ colorScheme: "dark" });
  await plotted("iops", 30);
  const lit = await pixelsAt("iops", 7500, "--limit");
  check(lit.most > 3, `the dark page has its own line, at the new limit (${lit.most} pixels)`);
  await page.screenshot({ path: path.join(pictures, "live-dark.png"), fullPage: true });
  const heap = await page.evaluate(() => performance.memory.usedJSHeapSize);
  console.log(`figure heap ${(heap / 2 ** 20).toFixed(1)} MiB`);
  await page.focus("#chart-iops summary");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#chart-iops tbody tr");
  const head = await page.locator("#chart-iops table thead th").allTextContents();
  const rows = await page.locator("#chart-iops tbody tr").count();
  check(head[0] === "time" && head[1] === "total" && rows >= 12, "a chart is also a table, by the keyboard");
  await page.keyboard.press("Enter");
  await page.hover("#chart-iops .plot");
  check(/\d:\d\d/.test(await page.textContent("#chart-iops .note")), "the pointer shows the time of a sample");
  await page.mouse.move(2, 2);
  // A server that was started again counts its samples anew.
  const before = await page.evaluate(() => window.weirPage.read().data.next);
  console.log("restart");
  await new Promise((resolve) => process.stdin.once("data", resolve));
  await page.waitForFunction((before) => {
    const { data } = window.weirPage.read();
    return data && data.next !== null && data.next < before && data.ms.length > 2;
  }, before);
  check((await page.textContent("#state")) === "live", "the page connects again after a restart");
  check(foreign.length === 0, `no request leaves the machine ${foreign.join(" ")}`);
  // Two refusals and a restart were asked for above.
  const other = errors.filter((text) => !/status of (401|422)|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_CONNECTION_RESET|ERR_EMPTY/.test(text));
  check(other.length === 0, `no errors ${other.join(" | ")}`);
} catch (error) {
  console.log(`FAILED ${error.message}`);
  await page.screenshot({ path: path.join(pictures, "live-failed.png"), fullPage: true });
} finally {
  await browser.close();
  process.stdin.destroy();
}
