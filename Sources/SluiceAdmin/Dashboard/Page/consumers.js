// Groups and cursors.
const knownOr = (value, write) => (value === null || value === undefined ? "…" : number(value) === 0 ? "0" : write(number(value)));

// - topics: whether each row begins with the topic.
function consumersTable(list, chosen, total, topics) {
  if (!list || !list.length) return make("p", { class: "facts" }, "No groups and no cursors.");
  const rows = list.map((each) => {
    const isGroup = each.kind === "group";
    const topic = each.topic || opened;
    const link = make("a", { href: `#/topics/${encodeURIComponent(each.topic || opened)}` }, each.topic || "");
    return make(
      "tr", { class: chosen === each.name ? "chosen" : "", "data-key": `${each.kind} ${each.name} ${each.topic || ""}` }, make("th", { scope: "row" }, `${each.name} `, make("span", { class: "tag" }, each.kind)),
      topics && make("td", {}, link), cell(count(number(each.lag))), cell(knownOr(each.lagBytes, bytes)), cell(knownOr(each.lagSeconds, age)),
      make("td", { class: "n" }, String(each.members), each.members ? null : make("div", { class: "quiet small" }, `for ${since(each.idleSeconds)}`)), cell(isGroup ? count(number(each.unacknowledged)) : ""),
      cell(isGroup ? (number(each.delayed) ? `${count(number(each.delayed))}, next in ${duration(each.nextRetrySeconds)}` : "0") : ""),
      cell(isGroup ? count(number(each.redeliveries)) : ""), cell(isGroup ? count(number(each.deadLetters) + number(each.abandoned)) : ""),
      mayAct && make("td", { class: "buttons" }, actionButton("Move…", () => moveConsumer(each, topic)), actionButton("Delete…", () => deleteConsumer(each, topic))));
  });
  const header = head(
    "Name", ...(topics ? ["Topic"] : []), "#Lag", "#Bytes", "#Time", "#Members", "#Unacknowledged", "#Delayed", "#Redelivered", "#Given up", ...(mayAct ? [""] : []));
  const more = total > list.length ? make("tr", {}, make("td", { colspan: "11", class: "quiet" }, `The first ${list.length} of ${count(total)}.`)) : "";
  stack(header, rows);
  return make("table", { class: "stack", role: "table" }, make("caption", { class: "hidden" }, "Groups and cursors"), header, make("tbody", {}, ...rows, more));
}

// Data that is fetched every two seconds while it is shown, and at once when its filter changes.
// - target: returns the address.
let poll = null;
let loadAgain = () => {};
function keepLoading(target, show, fail) {
  let newest = 0;
  const load = async () => {
    newest += 1;
    const turn = newest;
    try {
      const response = await fetch(target());
      const answer = await response.json();
      // The filter has changed meanwhile.
      if (turn !== newest) return;
      if (!response.ok) throw new Error(answer.error || `status ${response.status}`);
      show(answer);
    } catch (error) { setText(fail, `This can't be shown: ${error.message}`); }
  };
  loadAgain = load;
  load();
  poll = setInterval(() => { if (!document.hidden) load(); }, 2000);
}

// The text of a field, as a parameter of an address.
function filterOf(field) {
  const wanted = $(field).value.trim();
  return wanted && `&filter=${encodeURIComponent(wanted)}`;
}

function openConsumers() {
  keepLoading(() => `/api/consumers?limit=500${filterOf("consumer-filter")}`, (answer) => {
    consumers = answer;
    showConsumers();
  }, $("consumers-count"));
}

let consumers = null;
function showConsumers() {
  const [all, selected] = [number(consumers.count), number(consumers.selected)];
  setText($("consumers-count"), selected < all ? `${count(selected)} of ${count(all)}` : count(all));
  update($("consumers"), [selected || !all ? consumersTable(consumers.consumers, null, selected, true) : make("p", { class: "facts" }, "No group or cursor matches.")]);
}
$("consumer-filter").addEventListener("input", () => loadAgain());
