(() => {
"use strict";
// Elements, and the theme.
const $ = (id) => document.getElementById(id);

// An element with attributes and children, which are elements or text.
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "class") element.className = value;
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

const themes = ["automatic", "light", "dark"];
let theme = "automatic";
function showTheme() {
  if (theme === "automatic") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText($("theme"), `Theme: ${theme}`);
}
// A browser may deny pages their storage.
try { theme = localStorage.getItem("sluice-theme") || theme; } catch {}
if (!themes.includes(theme)) theme = "automatic";
showTheme();
$("theme").addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  try { localStorage.setItem("sluice-theme", theme); } catch {}
  showTheme();
});

// Numbers as people read them. Null is any number; large numbers come as text.
const number = (value) => (value === null ? Infinity : Number(value));
const grouped = new Intl.NumberFormat("en");

function scaled(value, step, units) {
  let index = 0;
  while (value >= step - 0.5 && index + 1 < units.length) { value /= step; index += 1; }
  const digits = index === 0 ? (value % 1 === 0 || value >= 100 ? 0 : 1) : value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return value.toFixed(digits) + units[index];
}
function count(value) {
  if (value === Infinity) return "any";
  return value < 100000 && value % 1 === 0 ? grouped.format(value) : scaled(value, 1000, ["", " k", " M", " G", " T"]);
}
const rate = (value) => (value > 0 && value < 0.05 ? "<0.1" : scaled(value, 1000, ["", " k", " M", " G", " T"]));
const bytes = (value) => scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
function duration(seconds) {
  if (seconds < 0.95) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}
// For what has a beginning: 5 min 12 s.
function since(seconds) {
  if (seconds < 60 || seconds >= 3600) return duration(seconds);
  return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}
const short = (nanoseconds) =>
  nanoseconds >= 1e9 ? `${(nanoseconds / 1e9).toPrecision(2)} s`
    : nanoseconds >= 1e6 ? `${Number((nanoseconds / 1e6).toPrecision(2))} ms` : `${Math.round(nanoseconds / 1e3)} µs`;
const plural = (value, one, many) => `${count(value)} ${value === 1 ? one : many}`;
const nameOf = (peer) => [peer.client || "a client without a name", peer.identity ? `(${peer.identity})` : ""].filter(Boolean).join(" ");

// Lines and columns.

// The last values of a series, one a second.
class Series {
  constructor(length) { this.values = new Float32Array(length); this.end = 0; this.count = 0; }
  push(value) {
    this.values[this.end] = value;
    this.end = (this.end + 1) % this.values.length;
    this.count = Math.min(this.count + 1, this.values.length);
  }
  // From the oldest on.
  at(index) { return this.values[(this.end - this.count + index + 2 * this.values.length) % this.values.length]; }
}

function drawLine(svg, series) {
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const length = series.values.length;
  let top = 0;
  for (let index = 0; index < series.count; index += 1) top = Math.max(top, series.at(index));
  const points = [];
  for (let index = 0; index < series.count; index += 1) {
    const x = ((length - series.count + index) / (length - 1)) * width;
    const y = height - 1 - (top > 0 ? series.at(index) / top : 0) * (height - 3);
    points.push(`${x.toFixed(1)},${y.toFixed(1)}`);
  }
  const line = points.length > 1 ? `M${points.join("L")}` : "";
  const start = points.length ? points[0].split(",")[0] : 0;
  svg.querySelector(".stroke")?.setAttribute("d", line);
  svg.querySelector(".area")?.setAttribute("d", line ? `${line}L${width},${height}L${start},${height}Z` : "");
}

const vector = "http://www.w3.org/2000/svg";
function makeLine() {
  const svg = document.createElementNS(vector, "svg");
  svg.setAttribute("viewBox", "0 0 110 22");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "line");
  svg.setAttribute("aria-hidden", "true");
  for (const name of ["area", "stroke"]) {
    const path = document.createElementNS(vector, "path");
    path.setAttribute("class", name);
    svg.append(path);
  }
  return svg;
}

// The bound below which that share of the counts lies; null for no counts.
function quantile(histogram, share) {
  const total = histogram.counts.reduce((sum, each) => sum + each, 0);
  if (!total) return null;
  let seen = 0;
  for (const [index, each] of histogram.counts.entries()) {
    seen += each;
    if (seen >= total * share) return histogram.bounds[Math.min(index, histogram.bounds.length - 1)];
  }
  return null;
}

function drawColumns(element, counts) {
  const shown = counts.slice(0, 22);
  while (element.children.length < shown.length) element.append(make("i"));
  const top = Math.max(...shown, 1);
  shown.forEach((each, index) => {
    // The square root keeps rare durations visible beside common ones.
    element.children[index].style.height = each ? `${Math.max(6, Math.sqrt(each / top) * 100)}%` : "0";
  });
}

// The state of the page: samples become rates.
const historyLength = 180;
const topics = new Map();
const history = { in: new Series(historyLength), out: new Series(historyLength), connections: new Series(historyLength) };
let broker = null;
let connections = [];
let omitted = 0;
let sampledAt = 0;
let tick = 0;

function take(sample) {
  const seconds = broker ? (sample.broker.time - broker.time) / 1000 : 0;
  broker = sample.broker;
  connections = sample.connections;
  omitted = sample.omitted;
  sampledAt = Date.now();
  tick += 1;
  let changed = false;
  for (const row of sample.topics) {
    let topic = topics.get(row.name);
    if (!topic) {
      topic = { name: row.name, in: 0, out: 0, inBytes: 0, outBytes: 0, line: null, row: null };
      topics.set(row.name, topic);
      changed = true;
    }
    measure(topic, row, seconds);
    topic.tick = tick;
  }
  const gone = sample.all ? [...topics.values()].filter((topic) => topic.tick !== tick).map((topic) => topic.name) : sample.gone;
  for (const name of gone) { topics.delete(name); changed = true; }
  const sum = { in: 0, out: 0, inBytes: 0, outBytes: 0 };
  for (const topic of topics.values()) {
    // A topic that isn't in a sample hasn't changed.
    if (topic.tick !== tick) topic.in = topic.out = topic.inBytes = topic.outBytes = 0;
    if (topic.line || topic.in + topic.out > 0) {
      topic.line = topic.line || new Series(120);
      topic.line.push(topic.in + topic.out);
    }
    for (const key of Object.keys(sum)) sum[key] += topic[key];
  }
  if (seconds > 0) {
    history.in.push(sum.in);
    history.out.push(sum.out);
  }
  history.connections.push(number(broker.connections));
  return { sum, changed };
}

function measure(topic, row, seconds) {
  const before = topic.row;
  topic.row = row;
  const isSame = before && before.epoch === row.epoch && seconds > 0;
  const per = (name) => (isSame ? Math.max(0, number(row.traffic[name]) - number(before.traffic[name])) / seconds : 0);
  topic.in = per("received");
  topic.out = per("sent");
  topic.inBytes = per("receivedBytes");
  topic.outBytes = per("sentBytes");
}

// The row of figures.
const latencies = [];

function showFigures(sum) {
  setText($("about"), `${broker.version ? `version ${broker.version}, ` : ""}up ${duration(broker.uptimeSeconds)}`);
  setText($("in-rate"), rate(sum.in));
  setText($("out-rate"), rate(sum.out));
  setText($("in-bytes"), `${bytes(sum.inBytes)}/s`);
  setText($("out-bytes"), `${bytes(sum.outBytes)}/s`);
  drawLine($("in-line"), history.in);
  drawLine($("out-line"), history.out);
  showLatency(broker.deliveryLatency);
  showMemory(broker.metrics, number(broker.process.residentBytes));
  showStorage(broker.storage);
  setText($("connections-count"), count(number(broker.connections)));
  setText(
    $("connections-more"),
    `${plural(number(broker.metrics.subscriptions), "subscription", "subscriptions")}, `
      + plural(number(broker.metrics.publications), "publication", "publications"));
  drawLine($("connections-line"), history.connections);
}

// The latency of the last minute; that since the start where nothing was delivered in it.
function showLatency(histogram) {
  const bounds = histogram.bounds.map(number);
  const now = histogram.counts.map(number);
  latencies.push(now);
  if (latencies.length > 61) latencies.shift();
  const recent = now.map((each, index) => Math.max(0, each - latencies[0][index]));
  const isRecent = recent.some((each) => each > 0);
  const shown = { bounds, counts: isRecent ? recent : now };
  const half = quantile(shown, 0.5);
  setText($("latency-half"), half === null ? "–" : `≤ ${short(half)}`);
  const tail = half === null ? "nothing delivered yet"
    : `99 % ≤ ${short(quantile(shown, 0.99))}, ${isRecent ? "last minute" : "since the start"}`;
  setText($("latency-tail"), tail);
  drawColumns($("latency-bars"), shown.counts);
  if (half !== null) setAttribute($("latency-bars"), "aria-label", `Half of the deliveries took at most ${short(half)}, ${tail}`);
}

const isTroubled = (storage) => Boolean(storage) && storage.state !== "working";

function showStorage(storage) {
  $("storage-figure").hidden = !storage;
  if (!storage) return;
  const limit = number(storage.limitBytes);
  const [value, unit] = bytes(number(storage.usedBytes)).split(" ");
  setText($("storage"), value);
  setText($("storage-unit"), limit === Infinity ? unit : `${unit} of ${bytes(limit)}`);
  const free = storage.availableBytes === null ? "" : `disk has ${bytes(number(storage.availableBytes))} left`;
  setText($("storage-more"), isTroubled(storage) ? `${storage.state} for ${duration(storage.sinceSeconds)}` : free);
  $("storage-more").classList.toggle("warn", isTroubled(storage));
  const percent = Math.round(storage.fullness * 100);
  $("storage-meter").firstElementChild.style.width = `${percent}%`;
  setAttribute($("storage-meter"), "aria-label", limit === Infinity ? "The store has no limit" : `${percent} percent of the store's limit are used`);
}

function storageLine(storage) {
  const publishers = number(storage.waitingPublishers);
  const waiting = publishers ? `${plural(publishers, "publisher waits", "publishers wait")}` : "publishers of durable topics wait";
  return make(
    "li", { class: "hold" }, make("b", {}, storage.state === "full" ? "The storage is full" : "The storage fails"),
    ` for ${duration(storage.sinceSeconds)}: ${waiting}. ${storage.message}.`);
}

function showMemory(metrics, resident) {
  const used = number(metrics.memory_used);
  const ceiling = number(metrics.memory_ceiling);
  const [value, unit] = bytes(used).split(" ");
  setText($("memory"), value);
  setText($("memory-unit"), ceiling ? `${unit} of ${bytes(ceiling)}` : unit);
  setText($("memory-more"), `process ${bytes(resident)}`);
  $("memory-meter").firstElementChild.style.width = ceiling ? `${Math.min(100, (used / ceiling) * 100)}%` : "0";
  setAttribute(
    $("memory-meter"), "aria-label",
    ceiling ? `${Math.round((used / ceiling) * 100)} percent of the ceiling, at which producers wait` : "There is no ceiling");
}

// What stops producers, in sentences.
const shownHolds = 8;

function showHolds() {
  const waiting = [...topics.values()].filter((topic) => number(topic.row.heldUpSeconds) > 0 || topic.row.holder)
    .sort((left, right) => number(right.row.heldUpSeconds) - number(left.row.heldUpSeconds));
  const lines = waiting.slice(0, shownHolds).map((topic) => holdLine(topic.row));
  if (isTroubled(broker.storage)) lines.unshift(storageLine(broker.storage));
  if (waiting.length > shownHolds) lines.push(make("li", { class: "quiet" }, `and ${plural(waiting.length - shownHolds, "topic", "topics")} more`));
  if (!lines.length) lines.push(make("li", { class: "quiet" }, "No producer waits."));
  const list = $("holds");
  // Only changed lines are replaced, so that a screen reader keeps its place.
  lines.forEach((line, index) => {
    const old = list.children[index];
    if (!old) list.append(line);
    else if (old.textContent !== line.textContent) old.replaceWith(line);
  });
  while (list.children.length > lines.length) list.lastElementChild.remove();
}

function holdLine(row) {
  const name = make("b", {}, row.name);
  const waited = number(row.heldUpSeconds);
  const holder = row.holder;
  const refused = number(row.waitingForStorage);
  if (refused) {
    return make(
      "li", { class: "hold" }, `${plural(refused, "publisher", "publishers")} of `, name, ` ${refused === 1 ? "waits" : "wait"} for the storage, `,
      `for ${duration(waited)}.`);
  }
  if (!holder) {
    const why = row.subscriptions ? "" : ", and there is no subscriber";
    return make("li", { class: "hold" }, "The producers of ", name, ` have waited for demand for ${duration(waited)}${why}.`);
  }
  const limit = holder.blocked ? "it doesn't read what it was sent" : limits[holder.holdingLimit] || holder.holdingLimit;
  return make(
    "li", { class: "hold" }, make("b", {}, nameOf(holder)), ` on connection ${holder.connection} holds up the producers of `, name,
    ` for ${since(number(holder.holdingSeconds))}: ${limit}; ${shares(holder)}.`);
}

// The limit that stops producers, by its name.
const limits = {
  "demand": "it has asked for nothing more", "buffer": "records that it has not taken fill the buffer",
  "replay": "records that are kept for its replay fill the buffer", "group demand": "its group has asked for nothing more",
  "group buffer": "records that its group has not taken fill the buffer",
  "group replay": "records that are kept for the replay of its group fill the buffer",
};

// The share of the last minutes in which a cause has stopped producers.
const percent = (share) => (share > 0 && share < 0.01 ? `${(share * 100).toFixed(1)} %` : `${Math.floor(share * 100 + 1e-9)} %`);
const shares = (hold) => `${percent(hold.heldLastMinute)} of the last minute, ${percent(hold.heldLastFiveMinutes)} of the last five`;

// The table of topics.
const pageLength = 50;
const sorting = { key: "name", descending: false };
// Which topic is open; its details come with the events.
let opened = null;
let order = [];
let page = 0;
let sortedAt = 0;
const lines = new Map();
// hall-2 comes before hall-10.
const names = new Intl.Collator("en", { numeric: true });

const sortKeys = {
  name: null,
  in: (topic) => topic.in,
  out: (topic) => topic.out,
  records: (topic) => number(topic.row.records),
  bytes: (topic) => number(topic.row.bytes),
  subscriptions: (topic) => topic.row.subscriptions,
  publications: (topic) => topic.row.publications,
  lag: (topic) => number(topic.row.lag),
  outstanding: (topic) => number(topic.row.outstanding),
};

function sortTopics() {
  sortedAt = Date.now();
  const wanted = $("filter").value.trim().toLowerCase();
  const busy = $("busy").checked;
  const key = sortKeys[sorting.key];
  const sign = sorting.descending ? -1 : 1;
  order = [...topics.values()]
    .filter((topic) => topic.name.toLowerCase().includes(wanted) && (!busy || topic.in + topic.out > 0 || topic.row.heldUpSeconds > 0))
    .sort((left, right) => {
      if (sorting.key === "name") return names.compare(left.name, right.name) * sign;
      const [a, b] = [key(left), key(right)];
      if (a !== b) return (a < b ? -1 : 1) * sign;
      return names.compare(left.name, right.name);
    });
  page = Math.max(0, Math.min(page, Math.ceil(order.length / pageLength) - 1));
}

// Rows stay in place while the visitor is about to press one.
function mayReorder() {
  const rows = $("topic-rows");
  return Date.now() - sortedAt > 4000 && !rows.matches(":hover") && !rows.contains(document.activeElement);
}

function showTopics(changed) {
  if (changed || (sorting.key !== "name" || $("busy").checked) && mayReorder()) sortTopics();
  const shown = order.slice(page * pageLength, (page + 1) * pageLength).filter((topic) => topics.has(topic.name));
  const wanted = [];
  for (const topic of shown) {
    let line = lines.get(topic.name);
    if (!line) lines.set(topic.name, (line = makeTopicLine(topic.name)));
    fillTopicLine(line, topic);
    wanted.push(line.row);
    if (topic.name === opened) wanted.push(detailRow());
  }
  const kept = new Set(shown.map((topic) => topic.name));
  for (const name of lines.keys()) if (!kept.has(name)) lines.delete(name);
  if (!wanted.length) wanted.push(emptyRow());
  arrange($("topic-rows"), wanted);
  const pages = Math.max(1, Math.ceil(order.length / pageLength));
  document.querySelector(".pager").hidden = pages < 2;
  setText($("page"), `${page + 1} of ${pages}`);
  $("back").disabled = page === 0;
  $("forth").disabled = page + 1 >= pages;
  const all = topics.size + omitted;
  setText($("topics-count"), order.length === all ? count(all) : `${count(order.length)} of ${count(all)}`);
}

// Gives an element these children, in this order, with the fewest moves.
function arrange(parent, wanted) {
  const kept = new Set(wanted);
  for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
  wanted.forEach((child, index) => {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] || null);
  });
}

let empty = null;
function emptyRow() {
  empty = empty || make("tr", {}, make("td", { colspan: "10", class: "quiet" }));
  setText(empty.firstElementChild, topics.size ? "No topic's name has this in it." : "No topics yet.");
  return empty;
}

function makeTopicLine(name) {
  const button = make("button", { type: "button", "aria-expanded": "false" }, name);
  button.addEventListener("click", () => openTopic(opened === name ? null : name));
  const tags = make("span");
  const cell = (kind) => make("td", { class: kind });
  const cells = {
    in: cell("n"), out: cell("n"), line: cell("middle"), records: cell("n middle"), bytes: cell("n wide"),
    subscriptions: cell("n middle"), publications: cell("n wide"), lag: cell("n middle"), outstanding: cell("n wide"),
  };
  const svg = makeLine();
  cells.line.append(svg);
  const row = make("tr", { class: "topic" }, make("th", { scope: "row" }, button, tags), ...Object.values(cells));
  return { row, button, tags, cells, svg };
}

function fillTopicLine(line, topic) {
  const row = topic.row;
  setAttribute(line.button, "aria-expanded", String(opened === topic.name));
  if (opened === topic.name) setAttribute(line.button, "aria-controls", "detail");
  else line.button.removeAttribute("aria-controls");
  put(line.cells.in, topic.in, rate);
  put(line.cells.out, topic.out, rate);
  put(line.cells.records, number(row.records), count);
  put(line.cells.bytes, number(row.bytes), bytes);
  put(line.cells.subscriptions, row.subscriptions, count);
  put(line.cells.publications, row.publications, count);
  put(line.cells.lag, number(row.lag), count);
  put(line.cells.outstanding, number(row.outstanding), count);
  if (topic.line) drawLine(line.svg, topic.line);
  const tags = [];
  if (row.state === "failed") tags.push(["failed", "bad"]);
  if (row.state === "finished") tags.push(["finished", ""]);
  if (row.storage === "durable") tags.push(["durable", ""]);
  if (row.flow !== "free") tags.push([row.flow, ""]);
  if (row.heldUpSeconds > 0) tags.push([`held up ${duration(row.heldUpSeconds)}`, "warn"]);
  const text = tags.map((tag) => tag[0]).join(" ");
  if (line.shown !== text) {
    line.shown = text;
    line.tags.replaceChildren(...tags.map(([words, kind]) => make("span", { class: `tag ${kind}` }, words)));
  }
}

function put(cell, value, write) {
  setText(cell, value === 0 ? "0" : write(value));
  cell.classList.toggle("zero", value === 0);
}

for (const head of document.querySelectorAll("[data-sort]")) {
  head.firstElementChild.addEventListener("click", () => {
    const key = head.dataset.sort;
    // The first press shows the greatest of numbers, and names in their order.
    sorting.descending = sorting.key === key ? !sorting.descending : key !== "name";
    sorting.key = key;
    for (const other of document.querySelectorAll("[data-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sorting.descending ? "descending" : "ascending");
    page = 0;
    showTopics(true);
  });
}
for (const id of ["filter", "busy"]) $(id).addEventListener("input", () => { page = 0; showTopics(true); });
$("back").addEventListener("click", () => { page -= 1; showTopics(true); });
$("forth").addEventListener("click", () => { page += 1; showTopics(true); });

// Subscribers and producers of the open topic. Bars show the last seconds: `past` has the totals at their beginning.
const drawnSeconds = 10;
let past = new Map();

function recently(stream, total) {
  const key = `${stream.connection}:${stream.stream}`;
  const values = past.get(key) || [];
  if (values.tick !== tick) values.push(total);
  values.tick = tick;
  if (values.length > drawnSeconds) values.shift();
  past.set(key, values);
  return Math.max(0, total - values[0]);
}

// A bar of the demand met in the last seconds, and of the open demand, to the scale of the table's longest.
function demandBar(met, open, scale, label) {
  const bar = make("div", { class: "demand", role: "img", "aria-label": label });
  if (met > 0) bar.append(make("i", { class: "sent" }));
  if (open > 0) bar.append(make("i", { class: open === Infinity ? "owed any" : "owed" }));
  const share = (value) => `${(value / scale) * 100}%`;
  for (const part of bar.children) {
    if (part.className === "sent") part.style.width = open === Infinity ? `${Math.min(50, (met / scale) * 50)}%` : share(met);
    else if (open === Infinity) part.style.flex = "1";
    else part.style.width = `max(2px, ${share(open)})`;
  }
  return bar;
}

function scaleOf(pairs) {
  return Math.max(1, ...pairs.map(([met, open]) => met + (open === Infinity ? 0 : open)));
}

const head = (...names) => make("thead", {}, make("tr", {}, ...names.map((name) =>
  make("th", { scope: "col", class: name.startsWith("#") ? "n" : "" }, name.replace("#", "")))));
const cell = (text, kind) => make("td", { class: kind || "n" }, text);

function subscribersTable(list, total) {
  const measured = list.map((each) => [recently(each, number(each.sent)), number(each.outstanding)]);
  const scale = scaleOf(measured);
  const rows = list.map((each, index) => {
    const [met, open] = measured[index];
    const words = open === Infinity ? "wants any number" : open === 0 ? "asks for nothing" : `asks for ${count(open)} more`;
    const holds = number(each.holdingSeconds) > 0;
    const state = [
      each.state, each.blocked ? "doesn't read" : "", 
      holds ? `holds up producers for ${since(each.holdingSeconds)} (${limits[each.holdingLimit] || each.holdingLimit})` : "",
      each.heldLastFiveMinutes > 0 ? `held them up ${shares(each)}` : "",
    ].filter(Boolean).join(", ");
    return make(
      "tr", { class: holds ? "holding" : "" }, make("th", { scope: "row" }, `${nameOf(each)} `, make("span", { class: "quiet" }, `on ${each.connection}`)),
      make(
        "td", {}, demandBar(met, open, scale, `${words}; got ${count(met)} in the last ${drawnSeconds} seconds`),
        make("span", { class: "demand-text" }, words)),
      make("td", { class: holds || each.blocked ? "warn" : "" }, state),
      cell(count(number(each.nextOffset))), cell(count(number(each.lag))), cell(count(number(each.sent))));
  });
  return streamsTable(
    rows, head("Subscriber", "Demand", "State", "#Next record", "#Behind", "#Sent"), "Subscribers", list.length, total, "No subscribers.");
}

function producersTable(list, total) {
  const measured = list.map((each) => [recently(each, number(each.received)), number(each.open)]);
  const scale = scaleOf(measured);
  const rows = list.map((each, index) => {
    const [met, open] = measured[index];
    const waits = number(each.waitingSeconds) > 0;
    const words = open === Infinity ? "may send any number" : open === 0 ? "may send nothing" : `may send ${count(open)} more`;
    return make(
      "tr", { class: waits ? "holding" : "" }, make("th", { scope: "row" }, `${nameOf(each)} `, make("span", { class: "quiet" }, `on ${each.connection}`)),
      make(
        "td", {}, demandBar(met, open, scale, `${words}; sent ${count(met)} in the last ${drawnSeconds} seconds`),
        make("span", { class: "demand-text" }, words)),
      make("td", { class: waits ? "warn" : "" }, waits ? `waits for ${duration(each.waitingSeconds)}${each.waitReason ? `: ${each.waitReason}` : ""}` : "may send"),
      cell(count(number(each.granted))), cell(count(number(each.received))));
  });
  return streamsTable(
    rows, head("Producer", "Grant", "State", "#Granted", "#Received"), "Producers", list.length, total, "No producers.");
}

function streamsTable(rows, header, caption, shown, total, none) {
  if (!rows.length) return make("p", { class: "facts" }, none);
  const more = total > shown ? make("tr", {}, make("td", { colspan: "6", class: "quiet" }, `These are ${shown} of ${count(total)}.`)) : "";
  return make("table", {}, make("caption", { class: "hidden" }, caption), header, make("tbody", {}, ...rows, more));
}

// The row of the open topic: its streams, its settings, its last records.
let detail = null;

function detailRow() {
  if (detail) return detail.row;
  const scroll = (label) => make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label });
  const parts = {
    facts: make("p", { class: "facts" }, "Loading…"), subscribers: scroll("Subscribers"), producers: scroll("Producers"),
    button: make("button", { type: "button", class: "plain" }, "Show the last records"),
    note: make("p", { class: "facts", role: "status" }), records: make("ul", { class: "records", hidden: true }),
  };
  const name = opened;
  const legend = (met, open) =>
    make("p", { class: "legend" }, `Filled: ${met} in the last ${drawnSeconds} seconds. Pale: ${open} beyond that.`);
  parts.button.addEventListener("click", () => showRecords(name));
  const cell = make(
    "td", { colspan: "10", id: "detail" }, parts.facts,
    make("h3", {}, "Subscribers"), legend("sent", "asked for"), parts.subscribers,
    make("h3", {}, "Producers"), legend("received", "granted"), parts.producers, make("h3", {}, "Records"), parts.button, parts.note, parts.records);
  detail = { ...parts, row: make("tr", { class: "detail" }, cell) };
  return detail.row;
}

function openTopic(name) {
  opened = name;
  detail = null;
  past = new Map();
  showTopics(false);
  watch();
}

function showDetail(topic) {
  if (!detail || topic.name !== opened) return;
  if (topic.state === "missing") return setText(detail.facts, "There is no such topic any more.");
  const facts = [];
  if (topic.failure) facts.push(`failed: ${topic.failure.message} (${topic.failure.code})`);
  facts.push(`records ${count(number(topic.firstOffset))} to ${count(number(topic.nextOffset))}`, bytes(number(topic.bytes)));
  for (const [key, value] of Object.entries(topic.settings)) facts.push(`${key} ${value}`);
  for (const [limit, amount] of Object.entries(topic.dropped)) {
    if (number(amount.records)) facts.push(`${count(number(amount.records))} records (${bytes(number(amount.bytes))}) dropped by ${limit}`);
  }
  const traffic = topic.traffic;
  if (number(traffic.missed)) facts.push(`${count(number(traffic.missed))} missed`);
  if (traffic.starvedSeconds > 0) facts.push(`subscribers without demand for ${duration(traffic.starvedSeconds)} in all`);
  if (traffic.heldUpSeconds > 0) facts.push(`producers held up for ${duration(traffic.heldUpSeconds)} in all`);
  if (detail.shownFacts !== facts.join()) {
    detail.shownFacts = facts.join();
    detail.facts.replaceChildren(...facts.map((fact) => make("span", {}, fact)));
  }
  detail.subscribers.replaceChildren(subscribersTable(topic.subscribers, topic.subscriptions));
  detail.producers.replaceChildren(producersTable(topic.producers, topic.publications));
}

async function showRecords(name) {
  const shown = detail;
  setText(shown.button, "Show the last records again");
  try {
    const response = await fetch(`/api/topics/${encodeURIComponent(name)}/records?count=20`);
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error || `status ${response.status}`);
    setText(shown.note, answer.records.length ? "" : "There are none in memory that can be shown.");
    shown.records.hidden = !answer.records.length;
    shown.records.replaceChildren(...answer.records.reverse().map(recordItem));
  } catch (error) {
    setText(shown.note, `They can't be shown: ${error.message}`);
    shown.records.hidden = true;
  }
}

function recordItem(record) {
  const facts = [`#${record.offset}`, new Date(record.time).toISOString().replace("T", " ").replace("Z", ""), bytes(number(record.payload.size))];
  if (record.key) facts.push(`key ${plain(record.key)}`);
  for (const header of record.headers || []) facts.push(`${header.name}: ${plain(header)}`);
  const payload = record.payload;
  const body = payload.text ?? (payload.hex.match(/.{1,64}/g) || []).map((line) => line.match(/.{1,4}/g).join(" ")).join("\n");
  const cut = payload.cut ? "\n…" : "";
  return make(
    "li", {}, make("p", { class: "head" }, ...facts.map((fact) => make("span", {}, fact))),
    payload.size ? make("pre", { class: "mono", tabindex: "0" }, body + cut) : make("p", { class: "head" }, "empty"));
}

const plain = (value) => (value.text ?? value.hex) + (value.cut ? "…" : "");

// The table of connections.
const connectionLines = new Map();

function showConnections() {
  const wanted = connections.map((connection) => {
    let line = connectionLines.get(connection.id);
    if (!line) {
      line = make("tr", {}, make("th", { scope: "row" }), ...["", "", "n", "n", "n", "n", ""].map((kind) => make("td", { class: kind })));
      connectionLines.set(connection.id, line);
    }
    const texts = [
      `${connection.client || "no name"} on ${connection.id}`, connection.identity || "–", connection.peer, count(connection.subscriptions),
      count(connection.publications), bytes(connection.buffered), duration(connection.ageSeconds), connection.security || "–",
    ];
    texts.forEach((text, index) => setText(line.children[index], text));
    return line;
  });
  const ids = new Set(connections.map((connection) => connection.id));
  for (const id of connectionLines.keys()) if (!ids.has(id)) connectionLines.delete(id);
  arrange($("connection-rows"), wanted);
  const all = number(broker.connections);
  setText($("connections-shown"), all > connections.length ? `the first ${connections.length} of ${count(all)}` : count(all));
}

// The stream of samples, and the message when it stops.
let stream = null;
let retry = null;

function showState(state, text) {
  setAttribute($("state"), "data-state", state);
  setText($("state-text"), text);
  document.body.classList.toggle("stale", state === "lost");
}

function watch() {
  clearTimeout(retry);
  if (stream) stream.close();
  stream = new EventSource(opened === null ? "/api/events" : `/api/events?topic=${encodeURIComponent(opened)}`);
  stream.addEventListener("sample", (event) => {
    const { sum, changed } = take(JSON.parse(event.data));
    showState("live", "Live");
    showFigures(sum);
    showHolds();
    showTopics(changed);
    showConnections();
  });
  stream.addEventListener("topic", (event) => showDetail(JSON.parse(event.data)));
  stream.addEventListener("error", lose);
}

function lose() {
  const since = sampledAt ? ` This is what was there at ${new Date(sampledAt).toLocaleTimeString()}.` : "";
  showState("lost", `The connection to the broker is lost; trying again.${since}`);
  // A browser doesn't reconnect after an answer without events.
  if (stream.readyState === EventSource.CLOSED) {
    clearTimeout(retry);
    retry = setTimeout(watch, 3000);
  }
}

// A browser may not notice that the connection is lost.
setInterval(() => {
  if (sampledAt && Date.now() - sampledAt > 6000) { lose(); if (Date.now() - sampledAt > 15000 && !document.hidden) watch(); }
}, 2000);

watch();
})();
