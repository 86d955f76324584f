// The row of the open topic: its streams and its settings.
let detail = null;
// The group or cursor in the address.
let chosenConsumer = null;

function detailRow() {
  if (detail) return detail.row;
  const scroll = (label) => make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label });
  const parts = {
    failure: make("p", { class: "notice", hidden: true }), facts: make("p", { class: "facts" }, "Loading…"), chart: make("div"), consumers: scroll("Groups and cursors"), subscribers: scroll("Subscribers"), producers: scroll("Producers"),
  };
  const name = opened;
  const cell = make(
    "td", { colspan: "10", id: "detail" }, parts.failure, parts.facts, make("p", {}, make("a", { class: "browse", href: recordsAddress(name, {}) }, "Browse the records")), topicActions(name),
    make("h3", {}, "Groups and cursors"), parts.consumers,
    make("h3", {}, "Subscribers"), parts.subscribers,
    make("h3", {}, "Producers"), parts.producers,
    // The present state comes first, since it shows the client that causes a problem.
    make("h3", {}, "History"), parts.chart);
  detail = { ...parts, row: make("tr", { class: "detail" }, cell) };
  detail.charts = new Charts(parts.chart, name, [
    ["Records a second", rate, [["received", "published"], ["sent", "delivered"]]],
    ["Lag in records", count, [["lag", "subscribers"], ["consumerLag", "groups and cursors"]]],
    ["Age of the oldest record that a group or cursor has yet to take", age, [["consumerAge", "age"]]],
    ["Bytes kept", bytes, [["bytes", "bytes"]]],
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
  if (topic.mqttName) facts.push(`in MQTT ${topic.mqttName}`);
  const kept = number(topic.records);
  facts.push(kept ? `${plural(kept, "record", "records")}, ${bytes(number(topic.bytes))}, ${offsets(topic.firstOffset, topic.nextOffset)}` : `no records, next offset ${grouped.format(topic.nextOffset)}`);
  for (const [cause, amount] of Object.entries(topic.dropped)) {
    if (number(amount.records)) facts.push(`${plural(number(amount.records), "record", "records")} (${bytes(number(amount.bytes))}) ${cause === "trim" ? "trimmed" : `dropped by ${cause}`}`);
  }
  const traffic = topic.traffic;
  if (number(traffic.missed)) facts.push(`${count(number(traffic.missed))} missed`);
  if (traffic.starvedSeconds > 0) facts.push(`subscribers without demand for ${duration(traffic.starvedSeconds)} in all`);
  if (traffic.heldUpSeconds > 0) facts.push(`producers blocked for ${duration(traffic.heldUpSeconds)} in all`);
  const settings = Object.entries(topic.settings).map(([key, value]) => make("span", {}, `${key} `, make("b", {}, String(value))));
  update(detail.facts, [...facts.map((fact) => make("span", {}, fact)), make("br"), ...settings]);
  setText(detail.failure, topic.failure ? `Failed: ${topic.failure.message} (${topic.failure.code})` : "");
  detail.failure.hidden = !topic.failure;
  update(detail.subscribers, subscribersTable(topic.subscribers, topic.subscriptions));
  update(detail.consumers, [consumersTable(topic.consumers, chosenConsumer, number(topic.consumerLag.cursors) + number(topic.consumerLag.groups))]);
  update(detail.producers, producersTable(topic.producers, topic.publications));
}
