// The row of figures.
const latencies = [];

// The broker's name in its cluster; without a cluster, that of its machine.
const nameOfBroker = () => broker.node || broker.host || "";

// The first address that clients on other machines can use; else the first.
function addressOfBroker() {
  const addresses = broker.addresses || [];
  return addresses.find((each) => !each.startsWith("unix:")) ?? addresses[0] ?? "";
}

function showBroker() {
  const others = (broker.addresses || []).length - 1;
  setText($("broker-name"), nameOfBroker());
  setText($("broker-address"), `${addressOfBroker()}${others > 0 ? ` and ${plural(others, "other", "others")}` : ""}`);
  setAttribute($("broker-address"), "title", (broker.addresses || []).join(", "));
}

function showFigures(sum) {
  $("nav-cluster").hidden = !broker.node;
  $("nav-users").hidden = !broker.authenticatesClients;
  showOwner();
  showBroker();
  setText($("about"), `${broker.version ? `version ${broker.version}, ` : ""}up ${duration(broker.uptimeSeconds)}`);
  setText($("in-rate"), rate(sum.in));
  setText($("out-rate"), rate(sum.out));
  setText($("in-bytes"), `${bytes(sum.inBytes)}/s`);
  setText($("out-bytes"), `${bytes(sum.outBytes)}/s`);
  drawLine($("in-line"), history.in);
  drawLine($("out-line"), history.out);
  showLatency(broker.deliveryLatency);
  showMemory(broker.metrics, number(broker.process.residentBytes));
  showStorage(broker.storage);
  setText($("connections-count"), count(number(broker.connections)));
  setText($("connections-more"), `${plural(number(broker.metrics.subscriptions), "subscription", "subscriptions")}, ${plural(number(broker.metrics.publications), "producer", "producers")}`);
  drawLine($("connections-line"), history.connections);
}

// The latency of the last minute; since the start if nothing was delivered in that minute.
function showLatency(histogram) {
  const bounds = histogram.bounds.map(number);
  const now = histogram.counts.map(number);
  latencies.push(now);
  if (latencies.length > 61) latencies.shift();
  const recent = now.map((each, index) => Math.max(0, each - latencies[0][index]));
  const isRecent = recent.some((each) => each > 0);
  const shown = { bounds, counts: isRecent ? recent : now };
  const half = quantile(shown, 0.5);
  setText($("latency-half"), half === null ? "–" : `≤ ${short(half)}`);
  const tail = half === null ? "nothing delivered yet"
    : `99 % ≤ ${short(quantile(shown, 0.99))}, ${isRecent ? "last minute" : "since the start"}`;
  setText($("latency-tail"), tail);
  drawColumns($("latency-bars"), shown.counts);
  if (half !== null) setAttribute($("latency-bars"), "aria-label", `Half of the deliveries took at most ${short(half)}, ${tail}`);
}

// From this percentage on the broker reports a problem.
const nearlyFull = 90;
const isTroubled = (storage) => Boolean(storage) && storage.state !== "working";

// The most bytes that can be in use: within the store's limit, and within the space on its disk.
function capacity(storage) {
  const room = storage.availableBytes === null ? Infinity : number(storage.fileBytes) + number(storage.availableBytes);
  return Math.min(number(storage.limitBytes), room);
}

function showStorage(storage) {
  $("storage-figure").hidden = !storage;
  $("nav-storage").hidden = !storage;
  $("storage-charts").hidden = !storage;
  if (!storage) return setText($("storage-facts"), "This broker has no store: its topics are in memory.");
  setText($("storage-facts"), `Files of ${bytes(number(storage.fileBytes))}, ${bytes(number(storage.backlogBytes))} wait to be written.`);
  const limit = number(storage.limitBytes);
  const [value, unit] = bytes(number(storage.usedBytes)).split(" ");
  setText($("storage"), value);
  setText($("storage-unit"), limit === Infinity ? unit : `${unit} of ${bytes(limit)}`);
  const free = storage.availableBytes === null ? "" : `disk has ${bytes(number(storage.availableBytes))} left`;
  setText($("storage-more"), isTroubled(storage) ? `${storage.state} for ${duration(storage.sinceSeconds)}` : free);
  $("storage-more").classList.toggle("warn", isTroubled(storage));
  // In whole percent, as in problems.
  const percent = Math.floor(storage.fullness * 100 + 1e-9);
  $("storage-meter").firstElementChild.style.width = `${percent}%`;
  $("storage-meter").hidden = capacity(storage) === Infinity;
  $("storage-meter").classList.toggle("warn", percent >= nearlyFull);
  setAttribute($("storage-meter"), "aria-label", `${percent} percent of what the store's limit and its disk allow is used`);
}

function showMemory(metrics, resident) {
  const used = number(metrics.memory_used);
  const ceiling = number(metrics.memory_ceiling);
  const [value, unit] = bytes(used).split(" ");
  setText($("memory"), value);
  setText($("memory-unit"), ceiling ? `${unit} of ${bytes(ceiling)}` : unit);
  setText($("memory-more"), `process ${bytes(resident)}`);
  const percent = ceiling ? Math.round((used / ceiling) * 100) : 0;
  $("memory-meter").firstElementChild.style.width = `${Math.min(100, percent)}%`;
  $("memory-meter").hidden = !ceiling;
  $("memory-meter").classList.toggle("warn", percent >= nearlyFull);
  setAttribute(
    $("memory-meter"), "aria-label",
    ceiling ? `${percent} percent of the ceiling, at which producers wait` : "There is no ceiling");
}
