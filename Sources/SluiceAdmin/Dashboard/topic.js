// The row of the open topic: its streams and its settings.
let detail = null;

function detailRow() {
  if (detail) return detail.row;
  const scroll = (label) => make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label });
  const parts = {
    facts: make("p", { class: "facts" }, "Loading…"), chart: make("div"), consumers: scroll("Groups and cursors"), subscribers: scroll("Subscribers"), producers: scroll("Producers"),
  };
  const name = opened;
  const legend = (met, open) =>
    make("p", { class: "legend" }, `Filled: ${met} in the last ${drawnSeconds} seconds. Pale: ${open} beyond that.`);
  const cell = make(
    "td", { colspan: "10", id: "detail" }, parts.facts, make("p", {}, make("a", { class: "browse", href: recordsAddress(name, {}) }, "Browse the records")), topicActions(name),
    make("h3", {}, "Groups and cursors"), parts.consumers,
    make("h3", {}, "Subscribers"), legend("sent", "asked for"), parts.subscribers,
    make("h3", {}, "Producers"), legend("received", "granted"), parts.producers,
    // What goes on now comes first: in trouble, the client that causes it.
    make("h3", {}, "History"), parts.chart);
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
  for (const [cause, amount] of Object.entries(topic.dropped)) {
    if (number(amount.records)) facts.push(`${plural(number(amount.records), "record", "records")} (${bytes(number(amount.bytes))}) ${cause === "trim" ? "trimmed" : `dropped by ${cause}`}`);
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
