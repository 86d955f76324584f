// The row of the open topic: its streams, its settings, its last records.
let detail = null;

function detailRow() {
  if (detail) return detail.row;
  const scroll = (label) => make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label });
  const parts = {
    facts: make("p", { class: "facts" }, "Loading…"), chart: make("div"), consumers: scroll("Groups and cursors"), subscribers: scroll("Subscribers"), producers: scroll("Producers"),
    button: make("button", { type: "button", class: "plain" }, "Show the last records"),
    note: make("p", { class: "facts", role: "status" }), records: make("ul", { class: "records", hidden: true }),
  };
  const name = opened;
  const legend = (met, open) =>
    make("p", { class: "legend" }, `Filled: ${met} in the last ${drawnSeconds} seconds. Pale: ${open} beyond that.`);
  parts.button.addEventListener("click", () => showRecords(name));
  const cell = make(
    "td", { colspan: "10", id: "detail" }, parts.facts, topicActions(name),
    make("h3", {}, "Groups and cursors"), parts.consumers,
    make("h3", {}, "Subscribers"), legend("sent", "asked for"), parts.subscribers,
    make("h3", {}, "Producers"), legend("received", "granted"), parts.producers,
    // What goes on now comes first: in trouble, the client that causes it.
    make("h3", {}, "History"), parts.chart, make("h3", {}, "Records"), parts.button, parts.note, parts.records);
  detail = { ...parts, row: make("tr", { class: "detail" }, cell) };
  detail.charts = new Charts(parts.chart, name, [
    ["Records a second", rate, [["received", "published"], ["sent", "delivered"]]],
    ["Lag in records", count, [["lag", "subscribers"], ["consumerLag", "groups and cursors"]]],
    ["Age of the oldest record that a group or cursor has yet to take", age, [["consumerAge", "age"]]],
    ["Kept", bytes, [["bytes", "bytes"]]],
  ]);
  return detail.row;
}

function openTopic(name) {
  if (opened === name) return;
  opened = name;
  detail?.charts.end();
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
  detail.consumers.replaceChildren(consumersTable(topic.consumers, null, number(topic.consumerLag.cursors) + number(topic.consumerLag.groups)));
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
