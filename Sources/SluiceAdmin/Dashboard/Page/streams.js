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

function subscribersTable(list, total) {
  const measured = list.map((each) => [recently(each, number(each.sent)), number(each.outstanding)]);
  const scale = scaleOf(measured);
  const rows = list.map((each, index) => {
    const [met, open] = measured[index];
    const words = open === Infinity ? "unlimited demand" : open === 0 ? "no demand" : `demand for ${count(open)} more`;
    const holds = number(each.holdingSeconds) > 0;
    const state = [
      each.state, each.group ? `member of ${each.group}` : "", each.blocked ? "doesn't read" : "",
      holds ? `blocks producers for ${since(each.holdingSeconds)} (${limits[each.holdingLimit] || each.holdingLimit})` : "",
      each.heldLastFiveMinutes > 0 ? `blocked them ${shares(each)}` : "",
    ].filter(Boolean).join(", ");
    // How long it has had a lag, and for how long this has been the cause.
    const lagging = number(each.lagSeconds) > 0 ? since(each.lagSeconds) : "";
    const cause = slow[each.slowness] ?? each.slowness;
    const why = cause && number(each.slowSeconds) > 0 && each.slowness !== "pace" ? `${cause}, for ${since(each.slowSeconds)}` : cause;
    return make(
      "tr", { class: holds ? "holding" : "", "data-key": `${each.node || ""} ${each.connection} ${each.stream}` }, make("th", { scope: "row" }, `${nameOf(each)} `, placeOf(each)),
      make(
        "td", {}, demandBar(met, open, scale, `${words}; got ${count(met)} in the last ${drawnSeconds} seconds`),
        make("span", { class: "demand-text" }, words)),
      make("td", { class: holds || each.blocked ? "warn" : "" }, state),
      cell(grouped.format(each.nextOffset)), cell(count(number(each.lag))), make("td", {}, ...(lagging || why ? [lagging, lagging && why ? ": " : "", make("span", { class: "quiet" }, why)] : [])),
      cell(count(number(each.sent))));
  });
  return streamsTable(
    rows, head("Subscriber", "Demand", "State", "#Next record", "#Behind", "Since", "#Sent"), "Subscribers", list.length, total, "No subscribers.", "sent", "asked for");
}

function producersTable(list, total) {
  const measured = list.map((each) => [recently(each, number(each.received)), number(each.open)]);
  const scale = scaleOf(measured);
  const rows = list.map((each, index) => {
    const [met, open] = measured[index];
    const isWaiting = number(each.waitingSeconds) > 0;
    const words = open === Infinity ? "may send any number" : open === 0 ? "may send nothing" : `may send ${count(open)} more`;
    return make(
      "tr", { class: isWaiting ? "holding" : "", "data-key": `${each.node || ""} ${each.connection} ${each.stream}` }, make("th", { scope: "row" }, `${nameOf(each)} `, placeOf(each)),
      make(
        "td", {}, demandBar(met, open, scale, `${words}; sent ${count(met)} in the last ${drawnSeconds} seconds`),
        make("span", { class: "demand-text" }, words)),
      make("td", { class: isWaiting ? "warn" : "" }, isWaiting ? `waits for ${duration(each.waitingSeconds)}${each.waitReason ? `: ${waits[each.waitReason] ?? each.waitReason}` : ""}` : "may send"),
      cell(count(number(each.granted))), cell(count(number(each.received))));
  });
  return streamsTable(
    rows, head("Producer", "Grant", "State", "#Granted", "#Received"), "Producers", list.length, total, "No producers.", "received", "granted");
}

function streamsTable(rows, header, caption, shown, total, none, met, open) {
  if (!rows.length) return [make("p", { class: "facts" }, none)];
  const more = total > shown ? make("tr", {}, make("td", { colspan: "7", class: "quiet" }, `These are ${shown} of ${count(total)}.`)) : "";
  stack(header, rows);
  return [
    make("p", { class: "legend" }, `Filled: ${met} in the last ${drawnSeconds} seconds. Pale: ${open} beyond that.`),
    make("table", { class: "stack", role: "table" }, make("caption", { class: "hidden" }, caption), header, make("tbody", {}, ...rows, more)),
  ];
}

// The node to which a client is connected: this one, or another one of the cluster that relays for it.
function placeOf(each) {
  if (each.node) return make("span", { class: "quiet" }, `connection ${each.connection} of node ${each.node}`);
  return make("a", { class: "quiet", href: `#/connections/${each.connection}` }, `connection ${each.connection}${doorOf(each)}`);
}
