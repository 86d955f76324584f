// Connections: clients of one name and identity are folded into one line.
let connections = [];
let connectionCount = 0;
let selectedConnections = 0;
let chosenConnection = null;
const unfolded = new Set();

function openConnections(id) {
  chosenConnection = id;
  if (id !== null) $("connection-filter").value = "";
  keepLoading(() => `/api/connections?limit=1000${filterOf("connection-filter")}`, (answer) => {
    connections = answer.connections;
    connectionCount = number(answer.count);
    selectedConnections = number(answer.selected);
    showConnections();
  }, $("connections-shown"));
}

function showConnections() {
  const groups = new Map();
  for (const each of connections) {
    const key = JSON.stringify([each.client, each.identity]);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(each);
  }
  const rows = [];
  for (const [key, members] of groups) {
    const holdsChosen = members.some((each) => String(each.id) === chosenConnection);
    if (members.length === 1) { rows.push(connectionRow(members[0])); continue; }
    const isOpen = unfolded.has(key) || holdsChosen;
    rows.push(foldRow(key, members, isOpen));
    if (isOpen) rows.push(...members.map(connectionRow));
  }
  if (!rows.length) rows.push(make("tr", {}, make("td", { colspan: "9", class: "quiet" }, connectionCount ? "None has this in it." : "No connections.")));
  stack($("connection-rows").closest("table").tHead, rows);
  update($("connection-rows"), rows);
  const first = selectedConnections > connections.length ? `the first ${connections.length} of ` : "";
  setText($("connections-shown"), first + (selectedConnections < connectionCount ? `${count(selectedConnections)} of ${count(connectionCount)}` : count(connectionCount)));
}

function foldRow(key, members, isOpen) {
  const button = make("button", { type: "button", "aria-expanded": String(isOpen), class: "fold" }, `${nameOf(members[0])}, ${members.length} connections`);
  button.addEventListener("click", () => {
    if (unfolded.has(key)) unfolded.delete(key); else unfolded.add(key);
    showConnections();
  });
  const sum = (name) => members.reduce((total, each) => total + number(each[name]), 0);
  return make(
    "tr", { class: "folded", "data-key": key }, make("th", { scope: "row" }, button), make("td", {}, members[0].identity || "–"), make("td", {}, ""),
    cell(count(sum("subscriptions"))), cell(count(sum("publications"))), cell(bytes(sum("buffered"))), cell(""), make("td", {}, ""), make("td", {}, ""));
}

function connectionRow(each) {
  const topics = (each.topics || []).flatMap((name) => [
    // A pattern has no place of its own.
    /[*>]/.test(name) ? make("span", { class: "quiet" }, ...breakable(name)) : make("a", { href: `#/topics/${encodeURIComponent(name)}` }, ...breakable(name)), " "]);
  return make(
    "tr", { class: String(each.id) === chosenConnection ? "chosen" : "", "data-key": String(each.id) },
    make("th", { scope: "row" }, `${each.client || "a client without a name"} `, make("a", { href: `#/connections/${each.id}` }, `connection ${each.id}`), make("div", { class: "links" }, ...topics)),
    make("td", {}, each.identity || "–"), make("td", {}, each.peer), cell(count(number(each.subscriptions))), cell(count(number(each.publications))),
    cell(bytes(number(each.buffered))), cell(duration(each.ageSeconds)), make("td", {}, each.security),
    make("td", {}, mayAct ? actionButton("Close…", () => disconnect(each)) : ""));
}

$("connection-filter").addEventListener("input", () => { chosenConnection = null; loadAgain(); });
