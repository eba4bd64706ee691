// Measures the cost of the live page:
// node measure.mjs WEIR CHROMIUM [MINUTES]
// Run it in a folder with playwright-core, with fio (engine nbd) in PATH, on an idle machine.
import { createRequire } from "node:module";
import { execFile, spawn } from "node:child_process";
import { promisify } from "node:util";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";

const [weir, executablePath, minutes = "10"] = process.argv.slice(2);
if (!weir || !executablePath) {
  console.error("node measure.mjs WEIR CHROMIUM [MINUTES]");
  process.exit(2);
}
const require = createRequire(path.join(process.cwd(), "measure.cjs"));
const { chromium } = require("playwright-core");
const run = promisify(execFile);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "weir-measure-"));
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const HOUR = 3600;
const TICK_S = 0.01;
const MOVED = 200;

/// Serves a layout; returns the process, the address of its page, and its socket.
async function serve(name, layout) {
  const file = path.join(folder, `${name}.toml`);
  const socket = path.join(folder, name);
  fs.writeFileSync(file, layout);
  const server = spawn(weir, ["serve", file, "--nbd", `unix:${socket}`, "--control", `${socket}.control`,
    "--web", "127.0.0.1:0"], { stdio: ["ignore", "ignore", "pipe"] });
  const page = await new Promise((found, failed) => {
    let said = "";
    server.stderr.on("data", (text) => {
      said += text;
      const line = said.match(/live page (http:\S+)/);
      if (line) found(line[1]);
    });
    server.on("exit", () => failed(new Error(said)));
  });
  return { server, page, socket };
}

/// Reads the stream of samples as a page does.
function follow(page) {
  const request = http.get(`${page}api/live`, (answer) => answer.resume());
  request.on("error", () => {});
  return () => request.destroy();
}

const middle = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];
const spread = (all, digits) => `${middle(all).toFixed(digits)} (${Math.min(...all).toFixed(digits)} to ${Math.max(...all).toFixed(digits)})`;

/// Returns the seconds of processor time of a process, and of its thread for the page.
function processor(pid) {
  const ticks = (stat) => {
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * TICK_S;
  };
  const read = (file) => fs.readFileSync(file, "utf8");
  let web = 0;
  for (const task of fs.readdirSync(`/proc/${pid}/task`)) {
    if (read(`/proc/${pid}/task/${task}/comm`).trim() === "weir-web") web += ticks(read(`/proc/${pid}/task/${task}/stat`));
  }
  return { all: ticks(read(`/proc/${pid}/stat`)), web };
}

async function dataPath() {
  const { server, page, socket } = await serve("one", '[[volume]]\nname = "v"\nunlimited = true\nsize = "1 GiB"\n');
  const iops = async () => {
    const { stdout } = await run("fio", ["--name=j", "--ioengine=nbd", `--uri=nbd+unix:///v?socket=${socket}`,
      "--rw=randread", "--bs=4k", "--iodepth=32", "--size=256m", "--time_based", "--runtime=3", "--output-format=json"], { cwd: folder });
    return JSON.parse(stdout.slice(stdout.indexOf("{"))).jobs[0].read.iops;
  };
  await iops();
  const rates = { open: [], closed: [] };
  const ratios = [];
  for (let pair = 0; pair < 15; pair += 1) {
    const one = {};
    for (const state of pair % 2 ? ["open", "closed"] : ["closed", "open"]) {
      const close = state === "open" ? follow(page) : () => {};
      await pause(300);
      one[state] = await iops();
      close();
      rates[state].push(one[state]);
    }
    ratios.push(one.open / one.closed);
  }
  server.kill("SIGTERM");
  console.log(`data path, IOPS, page closed: ${spread(rates.closed, 0)}`);
  console.log(`data path, IOPS, page open: ${spread(rates.open, 0)}`);
  console.log(`data path, ratio open to closed, 15 pairs: ${spread(ratios, 3)}`);
}

/// Forwards requests to the server, and lengthens histories to an hour by repeating them.
function hourly(page) {
  const target = new URL(page);
  const proxy = http.createServer((request, response) => {
    const headers = { ...request.headers, host: target.host };
    delete headers.origin;
    const onward = http.request({ host: target.hostname, port: target.port, path: request.url, method: request.method, headers }, (answer) => {
      if (!request.url.startsWith("/api/history") || answer.statusCode !== 200) {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
        return;
      }
      let text = "";
      answer.on("data", (part) => { text += part; });
      answer.on("end", () => {
        const history = JSON.parse(text);
        const own = history.ms.length;
        const end = history.ms[own - 1];
        const filled = (values) => Array.from({ length: HOUR }, (_, i) => values[(i + own * HOUR - HOUR) % own]);
        history.ms = Array.from({ length: HOUR }, (_, i) => end - (HOUR - 1 - i) * 1000);
        // A column of equal values is one number; here it is as long as any other.
        for (const [name, values] of Object.entries(history.columns)) {
          history.columns[name] = filled(Array.isArray(values) ? values : new Array(own).fill(values));
        }
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify(history));
      });
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  return new Promise((done) => proxy.listen(0, "127.0.0.1", () => done({ proxy, page: `http://127.0.0.1:${proxy.address().port}/` })));
}

/// Returns the proportional memory of all processes of the browser's page, in MiB.
async function memory(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const sizes = {};
  for (const { type, id } of processInfo) {
    let pss = 0;
    try { pss = Number(fs.readFileSync(`/proc/${id}/smaps_rollup`, "utf8").match(/^Pss:\s+(\d+)/m)[1]) / 1024; } catch { /* it ended */ }
    sizes[type] = Math.max(sizes[type] ?? 0, pss);
  }
  return sizes.renderer;
}

async function manyVolumes() {
  const names = Array.from({ length: MOVED }, (_, i) => `volume-${i}`);
  const layout = `edition = "azure-now"\n${names.map((name) => `[[volume]]\nname = "${name}"\ntier = "P10"\n`).join("")}`;
  const { server, page, socket } = await serve("many", layout);
  const jobs = names.map((name) => `[${name}]\nuri=nbd+unix:///${name}?socket=${socket}\n`).join("");
  const file = path.join(folder, "many.fio");
  fs.writeFileSync(file, `[global]\nioengine=nbd\nthread\nrw=randrw\nbs=8k\nsize=16m\nrate_iops=5,5\ntime_based\nruntime=24h\n${jobs}`);
  const load = spawn("fio", [file, "--output=/dev/null"], { cwd: folder, stdio: "ignore" });
  await pause(15_000);
  const { proxy, page: hour } = await hourly(page);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--enable-precise-memory-info"] });
  const shares = { open: [], closed: [], web: [] };
  const heaps = [];
  const sizes = [];
  const periods = Math.max(1, Math.round(Number(minutes)));
  for (let period = 0; period < periods; period += 1) {
    const isOpen = period % 2 === 1;
    const tab = isOpen ? await browser.newPage() : null;
    if (tab) await tab.goto(hour);
    await pause(2_000);
    const before = processor(server.pid);
    const start = process.hrtime.bigint();
    await pause(56_000);
    const seconds = Number(process.hrtime.bigint() - start) / 1e9;
    const after = processor(server.pid);
    shares[isOpen ? "open" : "closed"].push(((after.all - before.all) / seconds) * 100);
    if (!tab) continue;
    shares.web.push(((after.web - before.web) / seconds) * 100);
    sizes.push(await memory(browser));
    heaps.push(await tab.evaluate(() => performance.memory.usedJSHeapSize / 2 ** 20));
    if (period + 2 >= periods) {
      // Each volume is selected once, with its hour.
      await tab.selectOption("#window", "3600");
      await tab.focus("#list");
      for (let i = 0; i < MOVED; i += 1) {
        await tab.keyboard.press("ArrowDown");
        await pause(60);
      }
      const points = await tab.evaluate(() => window.weirPage.read().data.ms.length);
      console.log(`after 200 selections with ${points} samples each, MiB: ${(await memory(browser)).toFixed(0)}`);
      await tab.screenshot({ path: path.join(folder, "many.png"), fullPage: false });
      console.log(`picture ${path.join(folder, "many.png")}`);
    }
    await tab.close();
  }
  await browser.close();
  proxy.close();
  load.kill("SIGTERM");
  server.kill("SIGTERM");
  console.log(`200 volumes, server, % of a core, page closed: ${spread(shares.closed, 2)}`);
  console.log(`200 volumes, server, % of a core, page open: ${spread(shares.open, 2)}`);
  console.log(`200 volumes, thread of the page, % of a core: ${spread(shares.web, 2)}`);
  console.log(`200 volumes, process of the page, MiB: ${spread(sizes, 0)}; its JavaScript heap: ${spread(heaps, 1)}`);
}

await dataPath();
await manyVolumes();
process.exit(0);
