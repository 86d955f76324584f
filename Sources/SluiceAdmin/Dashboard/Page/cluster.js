// The cluster: its nodes, its engine, the owners of shards, and the take-overs of this node.
function openCluster() {
  keepLoading(() => "/api/cluster", showCluster, $("cluster-facts"));
}

function showCluster(answer) {
  $("cluster-tables").hidden = false;
  setText($("cluster-count"), `as node ${answer.node} knows it`);
  const engine = answer.engine;
  const facts = [
    answer.unreadiness ? `Not ready: ${answer.unreadiness}.` : "The node is ready.",
    engine.connected ? `Connected to the engine's server ${engine.server}.` : "Not connected to the engine.",
    engine.commitLatencySeconds === null ? "" : `The engine stored the last message in ${duration(engine.commitLatencySeconds)}.`,
    number(answer.commits) ? `${plural(number(answer.commits), "commit", "commits")} of this node's shards took ${duration(answer.commitSeconds / number(answer.commits))} each${slowest(answer.shards)}.` : "",
    engine.unsafe ? "The engine may lose what it has acknowledged, and is used nevertheless." : "",
    ...engine.problems.map((problem) => `${problem}.`),
    ...answer.nodes.filter((node) => node.problem).map((node) => `${node.problem[0].toUpperCase()}${node.problem.slice(1)}.`),
    `${plural(number(answer.takeOvers), "shard", "shards")} taken over, ${count(number(answer.handedOver))} handed over, ${plural(number(answer.suspensions), "lapse", "lapses")} of the lease since the start.`,
  ];
  setText($("cluster-facts"), facts.filter(Boolean).join(" "));
  const nodes = answer.nodes.map((node) => make(
    "tr", {}, make("th", { scope: "row" }, node.name, node.name === answer.node ? " (this one)" : ""), make("td", {}, node.address),
    make("td", warning(node), node.state), make("td", { class: "wide" }, node.version), cell(count(number(node.shards))), cell(`${duration(node.silenceSeconds)} ago`)));
  stack($("node-rows").closest("table").tHead, nodes);
  update($("node-rows"), nodes);
  update($("shard-rows"), shardRows(answer.shards));
  const links = rowsOrNone(answer.links.map(linkRow), 9);
  stack($("link-rows").closest("table").tHead, links);
  update($("link-rows"), links);
  const now = Date.now();
  update($("takeover-rows"), rowsOrNone(answer.recentTakeOvers.map((each) => make(
    "tr", {}, make("th", { scope: "row" }, String(each.shard)), make("td", {}, causeOf(each)), cell(duration(each.seconds)), cell(since(Math.max(0, (now - each.time) / 1000)))))));
}

// Attributes that mark the state of a node.
function warning(node) {
  if (node.problem) return { class: "warn", title: node.problem };
  return node.state === "silent" ? { class: "warn", title: "No sign of it has come for longer than a lease: it may live or not." } : {};
}

// The shard with the longest commits.
function slowest(shards) {
  const measured = shards.filter((shard) => shard.commitLatencySeconds !== null);
  if (measured.length < 2) return "";
  const worst = measured.reduce((one, other) => other.commitLatencySeconds > one.commitLatencySeconds ? other : one);
  return `; lately the slowest are those of shard ${worst.number}, ${duration(worst.commitLatencySeconds)}`;
}

// One row for all shards with the same owner, state and target.
function shardRows(shards) {
  const groups = new Map();
  for (const shard of shards) {
    const state = shard.state === "held" && shard.target !== null && shard.target !== shard.owner ? `goes to ${shard.target}` : shard.state;
    const key = JSON.stringify([shard.owner, state]);
    if (!groups.has(key)) groups.set(key, { owner: shard.owner, state, numbers: [] });
    groups.get(key).numbers.push(shard.pin === null ? String(shard.number) : `${shard.number} (moved to ${shard.pin})`);
  }
  const sorted = [...groups.values()].sort((one, other) => (one.owner ?? "").localeCompare(other.owner ?? ""));
  return rowsOrNone(sorted.map((group) => make(
    "tr", {}, make("th", { scope: "row" }, group.owner ?? "no node"), make("td", {}, group.state),
    make("td", {}, `${count(group.numbers.length)}: ${group.numbers.join(", ")}`))));
}

function linkRow(link) {
  const counts = [link.connections, link.streams, link.recordsReceived, link.recordsSent].map((each) => cell(count(number(each))));
  const sizes = [link.bytesReceived, link.bytesSent].map((each) => cell(bytes(number(each))));
  const troubles = [link.lost, link.failed].map((each) => cell(count(number(each))));
  return make("tr", {}, make("th", { scope: "row" }, link.node), ...counts, ...sizes, ...troubles);
}

function rowsOrNone(rows, columns = 4) {
  return rows.length ? rows : [make("tr", {}, make("td", { colspan: String(columns), class: "quiet" }, "None."))];
}

function causeOf(each) {
  if (each.cause === "handed-over") return `handed over by ${each.from}`;
  if (each.cause === "owner-died") return `${each.from} was silent for too long`;
  return "first owner";
}
