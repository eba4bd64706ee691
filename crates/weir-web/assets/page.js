// The live page. Text of the server reaches the document only through textContent.
"use strict";
(() => {
  const PROTOCOL = 1;
  const KEPT = 3600;
  const SPARK = 60;
  const RETRY_MS = 5000;
  const SILENT_S = 5;
  // Rows of a chart's table.
  const ROWS = 200;
  const byId = (id) => document.getElementById(id);
  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const fine = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
  const number = (x) => (x >= 100 ? grouped.format(x) : fine.format(x));
  const show = (x, unit) => (x === null || x === undefined ? "-" : number(x) + unit);
  const MIB = 1 << 20;
  const units = {
    iops: (x) => show(x, ""),
    bytes: (x) => (x === null || x === undefined ? "-" : number(x / MIB) + " MiB/s"),
    ms: (x) => show(x, " ms"),
    share: (x) => (x === null || x === undefined ? "-" : fine.format(x * 100) + " %"),
    plain: (x) => show(x, ""),
  };
  const lasting = (s) => {
    if (s >= 3600) return `${Math.floor(s / 3600)} h ${Math.floor((s / 60) % 60)} min`;
    if (s >= 60) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
    return `${Math.round(s)} s`;
  };
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Distinct on light and dark grounds; by the position of the cap on a request's path.
  const WAITS = ["#7a7a7a", "#c0392b", "#d98200", "#a04fb5", "#5b6fd6", "#1d8348", "#17a2a2",
    "#8aa82c", "#b06a3b", "#2e86c1", "#d1499b", "#6c8a00", "#8e7cc3", "#a3793f"];

  let columns = [];
  let at = {};
  let hosts = [];
  let items = [];
  let rows = [];
  let version = -1;
  let events = [];
  let selected = null; // "host" or "host/volume", as keyOf makes it
  let data = null; // samples of the selected item: { next, ms: [], columns: [[]] }
  let waiting = []; // samples that came while the history was fetched
  let isFetching = false;
  let hasControls = false;
  let lastAnnounced = "";

  const keyOf = (host, volume) => JSON.stringify(volume === null ? [host] : [host, volume]);
  const value = (row, name) => (row ? row[at[name]] : null);
  const total = (row, kind) => (row ? row[at["read_" + kind]] + row[at["write_" + kind]] : 0);
  const waited = (row) => columns.reduce(
    (sum, name, i) => (name.startsWith("wait:") ? sum + (row[i] || 0) : sum), 0);

  // ---- the list ----

  const list = byId("list");

  function describe(description) {
    if (description.protocol !== PROTOCOL) {
      setState("lost", "the server has another release; reload the page");
      return;
    }
    columns = description.columns;
    at = Object.fromEntries(columns.map((name, i) => [name, i]));
    hosts = description.hosts;
    version = description.version;
    hasControls = description.controls;
    events = description.events;
    const old = new Map(items.map((item) => [item.key, item]));
    items = [];
    for (const host of hosts) {
      addItem(old, host, null);
      for (const volume of host.volumes) addItem(old, host, volume);
    }
    const keys = new Set(items.map((item) => item.key));
    for (const item of old.values()) if (!keys.has(item.key)) item.element.remove();
    sortList();
    if (!keys.has(selected)) {
      const first = items.find((item) => item.volume) || items[0];
      select(first ? first.key : null);
    } else {
      showFacts();
    }
    showEvents();
  }

  function addItem(old, host, volume) {
    const key = keyOf(host.name, volume && volume.name);
    let item = old.get(key);
    if (!item) {
      const element = make("li", volume ? "is-volume" : "is-host");
      element.setAttribute("role", "option");
      element.setAttribute("aria-selected", "false");
      element.id = "item-" + Math.random().toString(36).slice(2);
      const label = make("span", "label", volume ? volume.name : host.name);
      label.title = label.textContent;
      const now = make("span", "now", "");
      const canvas = make("canvas");
      canvas.width = 168;
      canvas.height = 64;
      canvas.setAttribute("aria-hidden", "true");
      element.append(label, now, canvas);
      element.addEventListener("click", () => select(key));
      item = { key, element, now, canvas, ring: [] };
    }
    item.host = host;
    item.volume = volume;
    items.push(item);
  }

  function sortList() {
    const order = byId("order").value;
    const filter = byId("filter").value.toLowerCase();
    const rank = (item) => {
      const row = rows[items.indexOf(item)];
      if (!row) return 0;
      return order === "iops" ? total(row, "iops") : waited(row);
    };
    let shown = items.filter((item) => labelOf(item).toLowerCase().includes(filter));
    if (order !== "layout") {
      const ranked = shown.map((item) => [rank(item), item]);
      shown = ranked.sort((a, b) => b[0] - a[0]).map((pair) => pair[1]);
    }
    const present = [...list.children];
    const wanted = shown.map((item) => item.element);
    if (present.length !== wanted.length || wanted.some((element, i) => element !== present[i])) {
      list.replaceChildren(...wanted);
    }
  }

  const labelOf = (item) => (item.volume ? item.volume.name : item.host.name);

  function showList() {
    const line = color("--first");
    items.forEach((item, i) => {
      const row = rows[i];
      if (!row) return;
      const iops = total(row, "iops");
      item.ring.push(iops);
      if (item.ring.length > SPARK) item.ring.shift();
      const lost = isLost(item.volume);
      const text = lost
        ? `backend ${item.volume.backend.state}`
        : `${number(iops)} IOPS, ${number(total(row, "bytes") / MIB)} MiB/s`;
      if (item.now.textContent !== text) item.now.textContent = text;
      const busy = value(row, "depth");
      item.element.classList.toggle("is-lost", lost);
      item.element.classList.toggle("is-held", busy > 0 && waited(row) >= busy / 2);
      if (item.element.isConnected) spark(item, line);
    });
  }

  function spark(item, line) {
    const rect = item.element.getBoundingClientRect();
    if (rect.bottom < 0 || rect.top > innerHeight) return;
    const { canvas, ring } = item;
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    const most = Math.max(1, ...ring);
    context.beginPath();
    ring.forEach((y, i) => {
      const px = ((SPARK - ring.length + i) / (SPARK - 1)) * canvas.width;
      const py = canvas.height - 3 - (y / most) * (canvas.height - 6);
      if (i === 0) context.moveTo(px, py);
      else context.lineTo(px, py);
    });
    context.strokeStyle = line;
    context.lineWidth = 2;
    context.stroke();
  }

  list.addEventListener("keydown", (event) => {
    const shown = [...list.children];
    const here = shown.findIndex((element) => element.getAttribute("aria-selected") === "true");
    const to = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: shown.length - 1,
      PageDown: here + 10, PageUp: here - 10 }[event.key];
    if (to === undefined || shown.length === 0) return;
    event.preventDefault();
    const element = shown[Math.min(Math.max(to, 0), shown.length - 1)];
    const item = items.find((own) => own.element === element);
    if (item) select(item.key);
    element.scrollIntoView({ block: "nearest" });
  });
  byId("filter").addEventListener("input", sortList);
  byId("order").addEventListener("change", sortList);

  // ---- the selected volume or host ----

  const current = () => items.find((item) => item.key === selected);

  function select(key) {
    selected = key;
    for (const item of items) {
      item.element.setAttribute("aria-selected", String(item.key === key));
      if (item.key === key) list.setAttribute("aria-activedescendant", item.element.id);
    }
    data = null;
    for (const chart of CHARTS) chart.table.open = false;
    showFacts();
    showEvents();
    fetchHistory();
  }

  const isLost = (volume) => Boolean(volume && volume.backend && volume.backend.state !== "connected");

  /// Returns the address and state of a volume's backend, if it has one.
  function backendOf({ backend }) {
    if (!backend) return null;
    const reason = backend.reason ? `: ${backend.reason}` : "";
    return `backend ${backend.address} ${backend.state}${reason}`;
  }

  function showFacts() {
    const item = current();
    if (!item) return;
    const { host, volume } = item;
    byId("name").textContent = labelOf(item);
    const facts = volume
      ? [`volume of host ${host.name}`, volume.tier && `tier ${volume.tier}${volume.performance_tier ? ` as ${volume.performance_tier}` : ''}`,
        `${number(volume.size_bytes / 2 ** 30)} GiB`, `host cache ${volume.cache}`,
        backendOf(volume)]
      : ["host", host.size, `${host.volumes.length} volumes`];
    byId("facts").textContent = facts.filter(Boolean).join(", ");
    byId("controls").hidden = !hasControls;
    for (const own of document.querySelectorAll(".for-volume")) own.hidden = !volume;
    byId("crash").textContent = `Crash host ${host.name}`;
    document.title = `${labelOf(item)} - Weir`;
  }

  async function fetchHistory() {
    const item = current();
    if (!item) return;
    const key = selected;
    isFetching = true;
    waiting = [];
    let query = "/api/history?host=" + encodeURIComponent(item.host.name);
    if (item.volume) query += "&volume=" + encodeURIComponent(item.volume.name);
    try {
      const answer = await fetch(query);
      if (key !== selected) return;
      const history = answer.ok ? await answer.json() : null;
      if (key !== selected) return;
      data = { next: history ? history.next : null, ms: history ? history.ms : [],
        columns: columns.map((name) => {
          const own = history ? history.columns[name] : null;
          return Array.isArray(own) ? own : new Array(history ? history.ms.length : 0).fill(own);
        }) };
    } catch {
      data = null;
    }
    isFetching = false;
    const missed = waiting;
    waiting = [];
    for (const sample of missed) append(sample);
    draw();
  }

  function append(sample) {
    const index = items.findIndex((item) => item.key === selected);
    if (index < 0 || !data) return true;
    if (data.next !== null && sample.number < data.next) return true;
    if (data.next !== null && sample.number > data.next) return false;
    const row = sample.rows[index];
    if (!row) return true;
    data.next = sample.number + 1;
    data.ms.push(sample.ms);
    data.columns.forEach((column, i) => column.push(row[i]));
    if (data.ms.length > KEPT) {
      data.ms.shift();
      data.columns.forEach((column) => column.shift());
    }
    return true;
  }

  function take(sample) {
    if (sample.version !== version) return;
    rows = sample.rows;
    if (sample.events) {
      events = sample.events;
      showEvents();
    }
    if (sample.sentence) {
      byId("verdict").textContent = sample.sentence;
      // Figures change each second; they are not read out.
      const said = sample.sentence.replace(/[\d.,]+/g, "");
      if (said !== lastAnnounced) byId("announce").textContent = sample.sentence;
      lastAnnounced = said;
    }
    showList();
    showClients(sample.clients);
    if (byId("order").value !== "layout") sortList();
    if (isFetching) {
      waiting.push(sample);
    } else if (!data || !append(sample)) {
      fetchHistory();
    } else {
      draw();
    }
  }

  // ---- charts ----

  const line = (name, label, stroke) => ({ name, label, stroke: color(stroke), value: (row) => row[at[name]] });
  const limits = (end) => columns
    .filter((name) => name.startsWith("limit:") && (name.endsWith(end) || (end === "_bytes" && name === "limit:log_rate")))
    .map((name) => ({ name, label: "limit " + name.slice(6), isLimit: true,
      stroke: color(name.includes("_burst_") ? "--burst" : "--limit") }));
  const sumOf = (kind) => ({ name: "sum_" + kind, label: "total", stroke: color("--third"), sum: ["read_" + kind, "write_" + kind] });

  const CHARTS = [
    { id: "iops", title: "IOPS (operations per second)", unit: units.iops,
      series: () => [sumOf("iops"), line("read_iops", "reads", "--first"), line("write_iops", "writes", "--second"), ...limits("_iops")] },
    { id: "bytes", title: "Throughput (MiB per second)", unit: units.bytes, scale: MIB,
      series: () => [sumOf("bytes"), line("read_bytes", "reads", "--first"), line("write_bytes", "writes", "--second"), ...limits("_bytes")] },
    { id: "latency", title: "Latency (milliseconds)", unit: units.ms,
      series: () => [line("latency_ms", "mean", "--first"), line("p50_ms", "p50", "--third"), line("p99_ms", "p99", "--second")] },
    { id: "waits", title: "Time waited by cap (seconds per second)", unit: units.plain, isStacked: true,
      series: () => columns.filter((name) => name.startsWith("wait:"))
        .map((name, i) => ({ name, label: name.slice(5), stroke: WAITS[i % WAITS.length], isOptional: true })) },
    { id: "credits", title: "Burst credits left (% of a full bucket)", unit: units.share, scale: 0.01, most: 100,
      series: () => [line("credits_iops", "operations", "--first"), line("credits_bytes", "bytes", "--second")] },
    { id: "depth", title: "Queue depth (requests in flight, mean)", unit: units.plain,
      series: () => [line("depth", "queue depth", "--first")] },
    { id: "hits", title: "Cache hit rate (% of reads)", unit: units.share, scale: 0.01, most: 100,
      series: () => [line("hit_rate", "hits", "--first")], isNonZero: true },
  ];
  const charts = {};
  const container = byId("charts");

  for (const chart of CHARTS) {
    const figure = make("figure");
    figure.id = "chart-" + chart.id;
    const caption = make("figcaption");
    caption.append(make("h3", "", chart.title));
    chart.note = make("span", "note", "");
    caption.append(chart.note);
    chart.legend = make("ul", "legend");
    chart.place = make("div", "plot");
    chart.place.setAttribute("role", "img");
    chart.table = make("details", "as-table");
    chart.table.append(make("summary", "", "Table"), make("div", "scroll"));
    chart.table.addEventListener("toggle", () => showTable(chart));
    figure.append(caption, chart.legend, chart.place, chart.table);
    chart.figure = figure;
    container.append(figure);
  }

  const pick = (name) => data.columns[at[name]] || [];

  /// Returns the values of a series in the unit of its chart.
  function valuesOf(chart, series, from) {
    const scale = chart.scale || 1;
    const adjust = (x) => (x === null || x === undefined ? null : x / scale);
    if (series.sum) {
      const [a, b] = series.sum.map(pick);
      return a.slice(from).map((x, i) => adjust(x + b[from + i]));
    }
    return pick(series.name).slice(from).map(adjust);
  }

  function draw() {
    if (!data || data.ms.length === 0) return;
    const end = data.ms[data.ms.length - 1];
    // A new server has less than that; a minute is the least.
    const span = Math.min(Number(byId("window").value), Math.max(60, (end - data.ms[0]) / 1000));
    let from = data.ms.findIndex((ms) => ms >= end - span * 1000);
    if (from < 0) from = 0;
    const x = data.ms.slice(from).map((ms) => ms / 1000);
    for (const chart of CHARTS) drawChart(chart, x, from, [end / 1000 - span, end / 1000]);
    showFigures();
  }

  function drawChart(chart, x, from, range) {
    let series = chart.series().map((own) => ({ ...own, values: valuesOf(chart, own, from) }));
    series = series.filter((own) => own.values.some((y) => (own.isOptional || chart.isNonZero ? y : y !== null)));
    chart.figure.hidden = series.length === 0 && chart.id !== "waits";
    chart.shown = { x, series };
    showLegend(chart, series);
    showNote(chart);
    let drawn = series.map((own) => own.values);
    if (chart.isStacked) {
      // Painted from the top of the stack to its bottom, each down to zero.
      const sums = [];
      let below = x.map(() => 0);
      for (const values of drawn) {
        below = below.map((y, i) => y + (values[i] || 0));
        sums.push(below);
      }
      drawn = sums.reverse();
      series = [...series].reverse();
    }
    chart.top = topOf(chart, series, drawn);
    chart.range = range;
    const shape = series.map((own) => own.label).join("|");
    if (!chart.plot || chart.shape !== shape) {
      if (chart.plot) chart.plot.destroy();
      chart.shape = shape;
      chart.at = undefined;
      chart.plot = plotOf(chart, series, [x, ...drawn]);
      charts[chart.id] = chart.plot;
    } else {
      chart.plot.setData([x, ...drawn]);
    }
    const said = series.map((own) => `${own.label} ${chart.unit(lastOf(chart, own))}`).join(", ");
    chart.place.setAttribute("aria-label", `${chart.title}: ${said || "nothing"}`);
  }

  /// Shows the values of a chart as a table, if it is open. It stays as it is until it is opened again.
  function showTable(chart) {
    const place = chart.table.querySelector("div");
    place.replaceChildren(...(chart.table.open ? tableOf(chart) : []));
  }

  /// Returns the table of a chart; nothing before its first sample.
  function tableOf(chart) {
    if (!chart.shown) return [];
    const { x, series } = chart.shown;
    const step = Math.ceil(x.length / ROWS);
    const table = make("table");
    const said = step > 1 ? `, one of ${step} samples` : "";
    table.append(make("caption", "note", `${chart.title}, at ${clock(x[x.length - 1])}${said}`));
    const head = table.createTHead().insertRow();
    for (const text of ["time", ...series.map((own) => own.label)]) {
      const cell = make("th", "", text);
      cell.scope = "col";
      head.append(cell);
    }
    const body = table.createTBody();
    for (let i = x.length - 1; i >= 0; i -= step) {
      const row = body.insertRow();
      const time = make("th", "", clock(x[i]));
      time.scope = "row";
      row.append(time, ...series.map((own) => {
        const y = own.values[i];
        return make("td", "", chart.unit(y === null || y === undefined ? null : y * (chart.scale || 1)));
      }));
    }
    return [table];
  }

  const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString();

  /// The top of the axis: above the data, and above the nearest limit.
  function topOf(chart, series, drawn) {
    if (chart.most) return chart.most;
    let most = 0;
    let caps = [];
    series.forEach((own, i) => {
      const values = drawn[i];
      let top = 0;
      for (const y of values) if (y > top) top = y;
      if (own.isLimit) caps.push(top);
      else if (top > most) most = top;
    });
    caps = caps.filter((cap) => cap >= most * 0.98);
    return Math.max(most, caps.length ? Math.min(...caps) : 0) * 1.08 || 1;
  }

  function plotOf(chart, series, values) {
    const axis = { stroke: color("--soft"), grid: { stroke: color("--grid"), width: 1 }, ticks: { stroke: color("--grid") } };
    const options = {
      width: Math.max(chart.place.clientWidth, 200),
      height: 200,
      legend: { show: false },
      cursor: { drag: { x: false, y: false } },
      scales: { x: { time: true, range: () => chart.range }, y: { range: () => [0, chart.top] } },
      axes: [{ ...axis }, { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => fine.format(tick)) }],
      series: [{}, ...series.map((own) => ({
        label: own.label,
        stroke: own.stroke,
        width: 1.5,
        dash: own.isLimit ? [8, 5] : undefined,
        paths: own.isLimit ? uPlot.paths.stepped({ align: 1 }) : undefined,
        fill: chart.isStacked ? own.stroke : undefined,
        points: { show: false },
        spanGaps: false,
      }))],
      hooks: { draw: [(plot) => markEvents(plot)], setCursor: [(plot) => pointAt(chart, plot.cursor.idx)] },
    };
    return new uPlot(options, values, chart.place);
  }

  function markEvents(plot) {
    const item = current();
    if (!item) return;
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = color("--line");
    ctx.setLineDash([2, 4]);
    for (const event of ofItem(item)) {
      const px = Math.round(plot.valToPos(event.ms / 1000, "x", true));
      if (px < bbox.left || px > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(px, bbox.top);
      ctx.lineTo(px, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }

  /// Shows the values under the pointer in the legend; those of the end if it is elsewhere.
  function pointAt(chart, index) {
    const at = index === null || index === undefined ? undefined : index;
    if (chart.at === at || !chart.shown) return;
    chart.at = at;
    showLegend(chart, chart.shown.series);
    showNote(chart);
  }

  function showNote(chart) {
    const { x, series } = chart.shown;
    chart.note.textContent = chart.at < x.length ? clock(x[chart.at]) : noteOf(chart, series);
  }

  /// Returns the value at the end, which is the present on a live page.
  const lastOf = (chart, own) => valueAt(chart, own, own.values.length - 1);

  function valueAt(chart, own, index) {
    const y = own.values[index];
    return y === null || y === undefined ? null : y * (chart.scale || 1);
  }

  function showLegend(chart, series) {
    const wanted = series.map((own) => own.label);
    if (chart.labels === undefined || chart.labels.join("|") !== wanted.join("|")) {
      chart.labels = wanted;
      chart.legend.replaceChildren(...series.map((own) => {
        const entry = make("li");
        const key = make("span", own.isLimit ? "key is-limit" : "key");
        key.style.borderTopColor = own.stroke;
        entry.append(key, make("span", "", own.label + " "), make("span", "value", ""));
        return entry;
      }));
    }
    series.forEach((own, i) => {
      const pointed = chart.at !== undefined && chart.at < own.values.length;
      const text = chart.unit(pointed ? valueAt(chart, own, chart.at) : lastOf(chart, own));
      const place = chart.legend.children[i].querySelector(".value");
      if (place.textContent !== text) place.textContent = text;
    });
  }

  function noteOf(chart, series) {
    if (chart.id === "credits") return creditsNote();
    const above = series.filter((own) => own.isLimit && lastOf(chart, own) / (chart.scale || 1) > chart.top);
    return above.length && chart.plot ? "limits above the chart are in the legend only" : "";
  }

  /// Says how long the credits last at the rate of the last ten samples.
  function creditsNote() {
    const n = data.ms.length;
    const first = Math.max(0, n - 11);
    const seconds = (data.ms[n - 1] - data.ms[first]) / 1000;
    let least = Infinity;
    for (const name of ["credits_iops", "credits_bytes"]) {
      const values = pick(name);
      const spent = values[first] - values[n - 1];
      if (seconds > 0 && spent > 0) least = Math.min(least, (values[n - 1] * seconds) / spent);
    }
    const left = ["credits_iops", "credits_bytes"].map((name) => pick(name)[n - 1]).filter((x) => x !== null);
    if (left.some((x) => x < 0.0001)) return "used up";
    if (least >= 86400) return "not being spent";
    return `last ${lasting(least)} at the present rate`;
  }

  function showFigures() {
    const n = data.ms.length - 1;
    const item = current();
    const isCached = !item || !item.volume || item.volume.cache !== "none";
    const last = (name) => { const own = pick(name)[n]; return own === undefined ? null : own; };
    const sum = (kind) => last("read_" + kind) + last("write_" + kind);
    const cap = (end) => columns.filter((name) => name.startsWith("limit:") && name.endsWith(end))
      .map(last).filter((x) => x !== null);
    const bound = (end, unit) => { const all = cap(end); return all.length ? all.map(unit).join(" / ") : "none"; };
    const lines = [
      ["IOPS, reads", units.iops(last("read_iops")), ""],
      ["IOPS, writes and discards", units.iops(last("write_iops")), ""],
      ["IOPS, total", units.iops(sum("iops")), bound("_iops", units.iops)],
      ["Throughput, total", units.bytes(sum("bytes")), bound("_bytes", units.bytes)],
      ["Latency, mean", units.ms(last("latency_ms")), ""],
      ["Latency, 99th percentile", units.ms(last("p99_ms")), ""],
      ["Queue depth", units.plain(last("depth")), ""],
      ["IOPS allowed now", units.iops(last("now_iops")), ""],
      ["Throughput allowed now", units.bytes(last("now_bytes")), ""],
      ["Cache hit rate", isCached ? units.share(last("hit_rate")) : "-", ""],
      ["Burst credits, operations", units.share(last("credits_iops")), ""],
      ["Burst credits, bytes", units.share(last("credits_bytes")), ""],
    ];
    for (const name of columns.filter((own) => own.startsWith("wait:"))) {
      if (last(name) > 0) lines.push([`Waits at ${name.slice(5)}`, `${units.plain(last(name))} s per s`, ""]);
    }
    fillTable(byId("figures"), lines);
  }

  /// Shows lines of text in a table; the first of each is its head.
  function fillTable(table, lines) {
    const body = table.tBodies[0];
    while (body.rows.length > lines.length) body.deleteRow(-1);
    lines.forEach((texts, i) => {
      let row = body.rows[i];
      if (!row) {
        row = body.insertRow();
        const head = make("th");
        head.scope = "row";
        row.append(head, ...texts.slice(1).map(() => make("td")));
      }
      texts.forEach((text, j) => {
        if (row.cells[j].textContent !== text) row.cells[j].textContent = text;
      });
    });
  }

  function showClients(clients) {
    const item = current();
    if (!item || !clients) return;
    const { host, volume } = item;
    const isOf = (own) => own.host === host.name && (!volume || own.volumes.includes(volume.name));
    const own = clients.busiest.filter(isOf);
    byId("clients-part").hidden = clients.count === 0;
    fillTable(byId("clients"), own.map((one) => [one.peer, one.export, units.iops(one.iops),
      units.bytes(one.bytes_per_s), units.plain(one.in_flight)]));
    const shown = clients.busiest.length;
    byId("clients-note").textContent = own.length === 0 ? `none of the ${shown} busiest clients of the server is here`
      : clients.count > shown ? `the ${shown} busiest of the ${clients.count} clients of the server` : "";
  }

  function redrawAll() {
    for (const chart of CHARTS) {
      chart.shape = undefined;
      chart.labels = undefined;
    }
    draw();
  }

  byId("window").addEventListener("change", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  new ResizeObserver(() => {
    for (const chart of CHARTS) {
      const width = chart.place.clientWidth;
      if (chart.plot && width > 0 && width !== chart.plot.width) chart.plot.setSize({ width, height: 200 });
    }
  }).observe(container);

  // ---- events and changes ----

  const ofItem = (item) => events.filter((event) => event.item === labelOf(item) || event.item === item.host.name);

  function showEvents() {
    const shown = [...events].reverse().map((event) => {
      const entry = make("li");
      const time = make("time", "", new Date(event.ms).toLocaleTimeString());
      time.dateTime = new Date(event.ms).toISOString();
      entry.append(time, make("span", "", `${event.item}: ${event.text}`));
      return entry;
    });
    byId("events").replaceChildren(...(shown.length ? shown : [make("li", "note", "none so far")]));
  }

  function commandOf(action, item) {
    const volume = item.volume && item.volume.name;
    const host = item.host.name;
    switch (action) {
      case "set-tier": return { command: action, volume, tier: byId("tier").value.trim() };
      case "resize": return { command: action, volume, size: byId("size").value.trim() };
      case "set-cache": return { command: action, volume, mode: byId("cache").value };
      case "set-credits": return volume
        ? { command: action, volume, credits: byId("credits").value }
        : { command: "set-host-credits", host, credits: byId("credits").value };
      default: return { command: "crash", host };
    }
  }

  async function change(action) {
    const item = current();
    if (!item) return;
    if (action === "crash" && !confirm(`Crash host ${item.host.name}? Its clients are disconnected.`)) return;
    const answer = byId("answer");
    const say = (text, isFailed) => {
      answer.textContent = text;
      answer.toggleAttribute("data-failed", isFailed);
    };
    try {
      const response = await fetch("/api/command", {
        method: "POST",
        headers: { "content-type": "application/json", "x-weir-token": byId("token").value.trim() },
        body: JSON.stringify(commandOf(action, item)),
      });
      const text = await response.text();
      let reason = text;
      try { reason = JSON.parse(text).refused || reason; } catch { /* plain text */ }
      say(response.ok ? "done" : reason, !response.ok);
    } catch (error) {
      say(`the server does not answer: ${error.message}`, true);
    }
  }
  for (const button of document.querySelectorAll("button[data-action]")) {
    button.addEventListener("click", () => change(button.dataset.action));
  }
  byId("form").addEventListener("submit", (event) => event.preventDefault());

  // ---- the page as a file ----

  /// Returns the page as it is now, without scripts and controls. Drawings are pictures, and each
  /// chart has its table.
  function frozen(now) {
    // Nothing is loaded in a document that is not shown.
    const page = document.implementation.createHTMLDocument().importNode(document.documentElement, true);
    const within = (selector) => page.querySelectorAll(selector);
    const canvases = document.querySelectorAll("canvas");
    within("canvas").forEach((canvas, i) => {
      const picture = page.ownerDocument.createElement("img");
      picture.alt = "";
      picture.src = canvases[i].toDataURL();
      canvas.replaceWith(picture);
    });
    for (const chart of CHARTS) page.querySelector(`#chart-${chart.id} .as-table div`).replaceChildren(...tableOf(chart));
    for (const own of within("script, link, label, input, select, button, #controls, #announce, .skip")) own.remove();
    for (const own of within("#list, #list li")) {
      for (const name of ["role", "tabindex", "aria-selected", "aria-activedescendant"]) own.removeAttribute(name);
    }
    page.querySelector("#state").textContent = `saved ${now.toUTCString()}`;
    page.querySelector("#state").dataset.state = "saved";
    page.querySelector("body").classList.remove("is-lost");
    const policy = make("meta");
    policy.httpEquiv = "Content-Security-Policy";
    policy.content = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
    page.querySelector("meta[charset]").after(policy);
    page.querySelector("head").append(make("style", "", styles()));
    return `<!doctype html>\n${page.outerHTML}\n`;
  }

  /// Returns the styles with the present colors, which the pictures have, too.
  function styles() {
    const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
    const root = rules.find((rule) => rule.selectorText === ":root").style;
    const names = [...root].filter((name) => name.startsWith("--"));
    const scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const present = names.map((name) => `${name}: ${color(name)};`).join(" ");
    return [...rules.map((rule) => rule.cssText), `:root { color-scheme: ${scheme}; ${present} }`,
      ".plot img { display: block; width: 100%; height: 100%; }"].join("\n");
  }

  byId("save").addEventListener("click", () => {
    const item = current();
    if (!item) return;
    const now = new Date();
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([frozen(now)], { type: "text/html" }));
    const time = now.toISOString().replace(/\.\d+/, "").replaceAll(":", "-");
    link.download = `weir-${labelOf(item).replace(/[^\w-]+/g, "_")}-${time}.html`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), RETRY_MS);
  });

  // ---- the stream ----

  function setState(state, text) {
    byId("state").dataset.state = state;
    byId("state").textContent = text;
    document.body.classList.toggle("is-lost", state !== "live");
  }

  let heard = Date.now();

  function connect() {
    const stream = new EventSource("/api/live");
    stream.addEventListener("open", () => {
      heard = Date.now();
      setState("live", "live");
      // Samples are missing, and a server that was started again counts them anew.
      data = null;
    });
    stream.addEventListener("error", () => {
      setState("lost", "no connection; trying again");
      // The browser gives up if the answer is a refusal, such as that too many pages are open.
      if (stream.readyState === EventSource.CLOSED) setTimeout(connect, RETRY_MS);
    });
    const hear = () => {
      heard = Date.now();
      if (byId("state").dataset.state === "silent") setState("live", "live");
    };
    stream.addEventListener("alive", hear);
    stream.addEventListener("describe", (event) => describe(JSON.parse(event.data)));
    stream.addEventListener("sample", (event) => {
      hear();
      take(JSON.parse(event.data));
    });
  }
  connect();

  // A connection may stay open while the server answers nothing.
  setInterval(() => {
    const silent = Math.round((Date.now() - heard) / 1000);
    if (silent >= SILENT_S && byId("state").dataset.state !== "lost") {
      setState("silent", `the server sends nothing for ${lasting(silent)}`);
    }
  }, 1000);

  window.weirPage = Object.freeze({ charts, read: () => ({ selected, data }) });
})();
