// Places: each has an address behind the #, so that links and the browser's back lead to it.
const views = ["overview", "topics", "consumers", "connections", "storage", "cluster", "settings", "users"];
// Of one topic: its address stands behind the topic's.
const topicViews = ["records", "tail"];
let view = null;
let viewCharts = null;

function go(address) { location.hash = address; }

function showPlace() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  const ofTopic = parts[0] === "topics" && topicViews.includes(parts[2]) ? parts[2] : null;
  const wanted = ofTopic ?? (views.includes(parts[0]) ? parts[0] : "overview");
  const topic = wanted === "topics" && parts.length > 1 ? parts[1] : null;
  if (wanted !== view || wanted === "connections") openView(wanted, parts);
  chosenConsumer = topic !== null && parts[2] === "consumers" ? parts[3] : null;
  if (topic !== null || opened !== null) openTopic(topic);
  if (topic !== null) reveal(topic);
  if (ofTopic === "records") openRecords(parts[1], query || "");
  if (ofTopic === "tail") openTail(parts[1], query || "");
}

function openView(wanted, parts) {
  view = wanted;
  document.body.dataset.view = view;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === (view === "overview" ? "#/" : topicViews.includes(view) ? "#/topics" : `#/${view}`)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  closeTail();
  clearInterval(poll);
  viewCharts?.end();
  viewCharts = null;
  if (view === "overview") {
    viewCharts = new Charts($("broker-charts"), null, [
      ["Records a second", rate, [["received", "published"], ["sent", "delivered"]]],
      ["Memory", bytes, [["memory", "broker's records and clients"], ["residentBytes", "process"]]],
      ["Connections", count, [["connections", "connections"]]],
      ["Dropped records a second", rate, [["droppedRecords", "dropped"]]],
      ["Rejected logins and slow loop turns a second", rate, [["rejectedLogins", "rejected logins"], ["slowTurns", "slow loop turns"]]],
    ]);
  }
  if (view === "storage") {
    viewCharts = new Charts($("storage-charts"), null, [["Used by the store", bytes, [["storage", "used"]], storageLimit]]);
  }
  if (view === "consumers") openConsumers();
  if (view === "settings") openSettings();
  if (view === "users") openUsers();
  if (view === "connections") openConnections(parts[1] ?? null);
  if (view === "cluster") {
    openCluster();
    const milliseconds = (value) => `${Math.round(value * 10) / 10} ms`;
    viewCharts = new Charts($("cluster-charts"), null, [
      ["Commits a second", rate, [["commits", "commits"]]], ["Time of a commit", milliseconds, [["commitMilliseconds", "mean"]]],
      ["Shards of this node", count, [["shards", "shards"]]],
    ]);
  }
}

// Shows the page of the table with the topic, and scrolls to the topic.
function reveal(name) {
  if (!topics.has(name)) return;
  if (!order.includes(topics.get(name))) { $("filter").value = ""; $("busy").checked = false; sortTopics(); }
  const index = order.findIndex((topic) => topic.name === name);
  if (index >= 0) page = Math.floor(index / pageLength);
  showTopics(false);
  lines.get(name)?.row.scrollIntoView({ block: "nearest" });
}
