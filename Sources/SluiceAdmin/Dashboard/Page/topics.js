// The table of topics.
const pageLength = 50;
const sorting = { key: "name", descending: false };
// The open topic, whose details are in the events.
let opened = null;
let order = [];
let page = 0;
let sortedAt = 0;
const lines = new Map();
// Sorts hall-2 before hall-10.
const names = new Intl.Collator("en", { numeric: true });

// The largest backlog in records of a subscriber, cursor or group.
const largestLag = (row) => Math.max(number(row.lag), number(row.consumerLag?.lag ?? 0));

const sortKeys = {
  name: null,
  in: (topic) => topic.in,
  out: (topic) => topic.out,
  records: (topic) => number(topic.row.records),
  bytes: (topic) => number(topic.row.bytes),
  subscriptions: (topic) => topic.row.subscriptions,
  publications: (topic) => topic.row.publications,
  lag: (topic) => largestLag(topic.row),
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

// Rows stay in place while the visitor is about to press one of them.
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
  showMissing();
  setText($("topics-count"), order.length === all ? count(all) : `${count(order.length)} of ${count(all)}`);
}

// The address may name a topic that isn't in the table, because it was deleted or another node owns it.
let missing = null;
async function showMissing() {
  const isMissing = opened !== null && tick > 0 && !topics.has(opened);
  if (!isMissing) { missing = null; $("topics-missing").hidden = true; return; }
  if (missing === opened) return;
  const name = (missing = opened);
  const response = await fetch(topicPath(name));
  const answer = await response.json().catch(() => ({}));
  if (missing !== name || response.ok) return;
  setText($("topics-missing"), answer.error || `status ${response.status}`);
  $("topics-missing").hidden = false;
}

// In a cluster, a node lists only its own topics.
function showOwner() {
  $("topics-node").hidden = !broker.node;
  if (broker.node) setText($("topics-node"), `These are the topics that node ${broker.node} owns. The pages of the other nodes list theirs; the place Cluster has the nodes.`);
}

// Gives an element these children, in this order, with as few moves as possible.
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
  const button = make("button", { type: "button", "aria-expanded": "false" }, ...breakable(name));
  button.addEventListener("click", () => go(opened === name ? "#/topics" : `#/topics/${encodeURIComponent(name)}`));
  const tags = make("span");
  const cell = (kind) => make("td", { class: kind });
  const cells = {
    in: cell("n"), out: cell("n"), line: cell("middle"), records: cell("n middle"), bytes: cell("n wide"),
    subscriptions: cell("n middle"), publications: cell("n wide"), lag: cell("n"), outstanding: cell("n wide"),
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
  put(line.cells.lag, largestLag(row), count);
  put(line.cells.outstanding, number(row.outstanding), count);
  if (topic.line) drawLine(line.svg, topic.line);
  const tags = [];
  if (row.state === "failed") tags.push(["failed", "bad"]);
  if (row.state === "finished") tags.push(["finished", ""]);
  if (row.storage === "durable") tags.push(["durable", ""]);
  if (row.flow !== "free") tags.push([row.flow, ""]);
  if (row.heldUpSeconds > 0) tags.push([`blocked ${duration(row.heldUpSeconds)}`, "warn"]);
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
    // The first press sorts numbers in descending order, and names in ascending order.
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
