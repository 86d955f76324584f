// Groups and cursors.
const knownOr = (value, write) => (value === null || value === undefined ? "…" : number(value) === 0 ? "0" : write(number(value)));

// - topics: whether each has its topic in front of it.
function consumersTable(list, chosen, total, topics) {
  if (!list || !list.length) return make("p", { class: "facts" }, "No groups and no cursors.");
  const rows = list.map((each) => {
    const isGroup = each.kind === "group";
    const topic = each.topic || opened;
    const link = make("a", { href: `#/topics/${encodeURIComponent(each.topic || opened)}` }, each.topic || "");
    return make(
      "tr", { class: chosen === each.name ? "chosen" : "", "data-key": `${each.kind} ${each.name} ${each.topic || ""}` }, make("th", { scope: "row" }, `${each.name} `, make("span", { class: "tag" }, each.kind)),
      topics && make("td", {}, link), cell(count(number(each.lag))), cell(knownOr(each.lagBytes, bytes)), cell(knownOr(each.lagSeconds, age)),
      cell(each.members ? String(each.members) : `none for ${duration(each.idleSeconds)}`), cell(isGroup ? count(number(each.unacknowledged)) : ""),
      cell(isGroup ? count(number(each.redeliveries)) : ""), cell(isGroup ? count(number(each.deadLetters) + number(each.abandoned)) : ""),
      mayAct && make("td", { class: "buttons" }, actionButton("Move…", () => moveConsumer(each, topic)), actionButton("Delete…", () => deleteConsumer(each, topic))));
  });
  const header = head(
    "Name", ...(topics ? ["Topic"] : []), "#Behind", "#Bytes", "#Behind for", "#Members", "#Unacknowledged", "#Redelivered", "#Given up", ...(mayAct ? [""] : []));
  const more = total > list.length ? make("tr", {}, make("td", { colspan: "10", class: "quiet" }, `These are ${list.length} of ${count(total)}.`)) : "";
  stack(header, rows);
  return make("table", { class: "stack", role: "table" }, make("caption", { class: "hidden" }, "Groups and cursors"), header, make("tbody", {}, ...rows, more));
}

// A page that is fetched every two seconds while it is shown.
let poll = null;
function keepLoading(target, show, fail) {
  const load = async () => {
    try {
      const response = await fetch(target);
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.error || `status ${response.status}`);
      show(answer);
    } catch (error) { setText(fail, `This can't be shown: ${error.message}`); }
  };
  load();
  poll = setInterval(() => { if (!document.hidden) load(); }, 2000);
}

function openConsumers() {
  keepLoading("/api/consumers?limit=500", (answer) => {
    consumers = answer;
    showConsumers();
  }, $("consumers-count"));
}

let consumers = null;
function showConsumers() {
  const wanted = $("consumer-filter").value.trim().toLowerCase();
  const found = consumers.consumers.filter((each) => !wanted || [each.name, each.topic].some((text) => text.toLowerCase().includes(wanted)));
  setText($("consumers-count"), wanted ? `${count(found.length)} of ${count(number(consumers.count))}` : count(number(consumers.count)));
  update($("consumers"), [found.length || !wanted ? consumersTable(found, null, wanted ? found.length : number(consumers.count), true) : make("p", { class: "facts" }, "None has this in its name or topic.")]);
}
$("consumer-filter").addEventListener("input", () => { if (consumers) showConsumers(); });
