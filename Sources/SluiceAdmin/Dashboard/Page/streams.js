// Subscribers and producers of the open topic. Bars show the last seconds: `past` contains the totals at their beginning.
const drawnSeconds = 10;
let past = new Map();

function recently(stream, total) {
  const key = `${stream.node || ""}:${stream.connection}:${stream.stream}`;
  const values = past.get(key) || [];
  if (values.tick !== tick) values.push(total);
  values.tick = tick;
  if (values.length > drawnSeconds) values.shift();
  past.set(key, values);
  return Math.max(0, total - values[0]);
}

// A bar of the demand met in the last seconds, and of the open demand, scaled to the longest in the table.
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
  make("th", { scope: "col", class: name.startsWith("#") ? "n" : "" }, name ? name.replace("#", "") : make("span", { class: "hidden" }, "Actions")))));

// Labels cells with their columns, since on a narrow screen a row is a list. The roles stay the same in either layout.
function stack(header, rows) {
  const names = [...header.querySelectorAll("th")].map((each) => (each.querySelector(".hidden") ? "" : each.textContent));
  for (const row of rows) {
    row.setAttribute("role", "row");
    [...row.children].forEach((each, index) => {
      each.setAttribute("role", each.tagName === "TH" ? "rowheader" : "cell");
      if (index > 0 && names[index] && !each.hasAttribute("colspan")) each.dataset.name = names[index];
    });
  }
}

const cell = (text, kind) => make("td", { class: kind || "n" }, text);

const doorNames = { http: "HTTP", websocket: "WebSocket", mqtt: "MQTT" };
const doorOf = (stream) => doorNames[stream.door] ? `, by ${doorNames[stream.door]}` : "";

// A number, and below it how old that is.
const aged = (text, seconds) => make("td", { class: "n" }, text, make("div", { class: "reason" }, seconds > 0 ? since(seconds) : "\u00a0"));

function subscribersTable(list, total) {
  const measured = list.map((each) => [recently(each, number(each.sent)), number(each.outstanding)]);
  const scale = scaleOf(measured);
  const rows = list.map((each, index) => {
    const [met, open] = measured[index];
    const words = open === Infinity ? "requests any number" : open === 0 ? "requests nothing" : `requests ${count(open)} more`;
    return make(
      "tr", { class: number(each.holdingSeconds) > 0 ? "holding" : "", "data-key": `${each.node || ""} ${each.connection} ${each.stream}` }, make("th", { scope: "row" }, `${nameOf(each)} `, placeOf(each)),
      make(
        "td", {}, demandBar(met, open, scale, `${words}; got ${count(met)} in the last ${drawnSeconds} seconds`),
        make("span", { class: "demand-text" }, words)),
      subscriberState(each), cell(grouped.format(each.nextOffset)), aged(count(number(each.lag)), number(each.lagSeconds)), cell(count(number(each.sent))));
  });
  return streamsTable(
    rows, head("Subscriber", "Demand", "State", "#Next offset", "#Lag", "#Sent"), "Subscribers", list.length, total, "No subscribers.", "sent", "requested");
}

function producersTable(list, total) {
  const measured = list.map((each) => [recently(each, number(each.received)), number(each.open)]);
  const scale = scaleOf(measured);
  const rows = list.map((each, index) => {
    const [met, open] = measured[index];
    const words = open === Infinity ? "may publish any number" : open === 0 ? "may publish nothing" : `may publish ${count(open)} more`;
    return make(
      "tr", { class: number(each.waitingSeconds) > 0 ? "holding" : "", "data-key": `${each.node || ""} ${each.connection} ${each.stream}` }, make("th", { scope: "row" }, `${nameOf(each)} `, placeOf(each)),
      make(
        "td", {}, demandBar(met, open, scale, `${words}; published ${count(met)} in the last ${drawnSeconds} seconds`),
        make("span", { class: "demand-text" }, words)),
      producerState(each), cell(count(number(each.granted))), cell(count(number(each.received))));
  });
  return streamsTable(
    rows, head("Producer", "Grant", "State", "#Granted", "#Published"), "Producers", list.length, total, "No producers.", "published", "granted");
}

function streamsTable(rows, header, caption, shown, total, none, met, open) {
  if (!rows.length) return [make("p", { class: "facts" }, none)];
  const more = total > shown ? make("tr", {}, make("td", { colspan: "7", class: "quiet" }, `The first ${shown} of ${count(total)}.`)) : "";
  stack(header, rows);
  return [
    make("p", { class: "legend" }, `Filled: ${met} in the last ${drawnSeconds} seconds. Pale: ${open} beyond that.`),
    make("table", { class: "stack streams", role: "table" }, make("caption", { class: "hidden" }, caption), header, make("tbody", {}, ...rows, more)),
  ];
}

// The node to which a client is connected: this one, or another one of the cluster that relays for it.
function placeOf(each) {
  if (each.node) return make("span", { class: "quiet" }, `connection ${each.connection} of node ${each.node}`);
  return make("a", { class: "quiet", href: `#/connections/${each.connection}` }, `connection ${each.connection}${doorOf(each)}`);
}
