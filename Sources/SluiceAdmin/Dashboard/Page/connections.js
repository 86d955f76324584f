// Connections: those of clients with the same name and identity share one line.
let connections = [];
let connectionCount = 0;
let selectedConnections = 0;
let chosenConnection = null;
const unfolded = new Set();
// The bytes of each connection in the last answer, and the time of that answer, for rates.
let formerBytes = new Map();
let formerTime = 0;

function openConnections(id) {
  chosenConnection = id;
  if (id !== null) $("connection-filter").value = "";
  keepLoading(() => `/api/connections?limit=1000${filterOf("connection-filter")}`, (answer) => {
    connections = answer.connections;
    measureTraffic();
    connectionCount = number(answer.count);
    selectedConnections = number(answer.selected);
    showConnections();
  }, $("connections-shown"));
}

function measureTraffic() {
  const now = performance.now();
  const seconds = (now - formerTime) / 1000;
  for (const each of connections) {
    const former = formerBytes.get(each.id);
    // Ignores answers for an earlier visit to this page.
    for (const name of ["bytesReceived", "bytesSent"]) {
      each[`${name}Rate`] = former && seconds < 10 ? (number(each[name]) - number(former[name])) / seconds : null;
    }
  }
  formerBytes = new Map(connections.map((each) => [each.id, each]));
  formerTime = now;
}

// Bytes since the beginning, and the rate per second.
function traffic(total, perSecond) {
  return make("td", { class: "n" }, bytes(total), perSecond ? make("div", { class: "quiet small" }, `${bytes(perSecond)}/s`) : null);
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
  if (!rows.length) rows.push(make("tr", {}, make("td", { colspan: "11", class: "quiet" }, connectionCount ? "No connection matches." : "No connections.")));
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
  const sum = (name) => members.reduce((total, each) => total + number(each[name] ?? 0), 0);
  return make(
    "tr", { class: "folded", "data-key": key }, make("th", { scope: "row" }, button), make("td", {}, members[0].identity || "–"), make("td", {}, ""),
    cell(count(sum("subscriptions"))), cell(count(sum("publications"))), cell(bytes(sum("buffered"))),
    traffic(sum("bytesReceived"), sum("bytesReceivedRate")), traffic(sum("bytesSent"), sum("bytesSentRate")), cell(""), make("td", {}, ""), make("td", {}, ""));
}

function connectionRow(each) {
  const topics = (each.topics || []).flatMap((name) => [
    // A pattern has no page of its own.
    /[*>]/.test(name) ? make("span", { class: "quiet" }, ...breakable(name)) : make("a", { href: `#/topics/${encodeURIComponent(name)}` }, ...breakable(name)), " "]);
  return make(
    "tr", { class: String(each.id) === chosenConnection ? "chosen" : "", "data-key": String(each.id) },
    make("th", { scope: "row" }, `${each.client || "a client without a name"} `, make("a", { href: `#/connections/${each.id}` }, `connection ${each.id}`), make("div", { class: "links" }, ...topics)),
    make("td", {}, each.identity || "–"), make("td", {}, each.peer), cell(count(number(each.subscriptions))), cell(count(number(each.publications))),
    cell(bytes(number(each.buffered))), traffic(number(each.bytesReceived), each.bytesReceivedRate), traffic(number(each.bytesSent), each.bytesSentRate), cell(duration(each.ageSeconds)), make("td", {}, each.security),
    make("td", {}, mayAct ? actionButton("Close…", () => disconnect(each)) : ""));
}

$("connection-filter").addEventListener("input", () => { chosenConnection = null; loadAgain(); });
