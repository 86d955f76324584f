// The page Storage: the growth of the store, and the topics that use most of it.
const listedTopics = 20;

function showStoredTopics() {
  if (view !== "storage" || !broker?.storage) return;
  setText($("storage-growth"), growth(viewCharts?.plots[0].history, isTroubled(broker.storage) ? Infinity : capacity(broker.storage)));
  const stored = [...topics.values()].filter((topic) => topic.row.storage === "durable");
  stored.sort((left, right) => number(right.row.bytes) - number(left.row.bytes) || names.compare(left.name, right.name));
  const rows = stored.slice(0, listedTopics).map((topic) => make(
    "tr", { "data-key": topic.name },
    make("th", { scope: "row" }, make("a", { href: `#/topics/${encodeURIComponent(topic.name)}` }, ...breakable(topic.name))),
    cell(bytes(number(topic.row.bytes))), cell(count(number(topic.row.records)), "n middle"), cell(topic.inBytes ? bytes(topic.inBytes) : "0")));
  $("storage-topics").hidden = !rows.length;
  update($("storage-rows"), rows);
}

// The limit in the chart of the store; null before the first sample.
function storageLimit() {
  if (!broker?.storage) return null;
  const value = capacity(broker.storage);
  return value === Infinity ? null : { value, words: `${value < number(broker.storage.limitBytes) ? "limit of the disk" : "limit"} ${bytes(value)}` };
}

// By how much the store has grown in the range of the chart, and when it is full at that rate.
function growth(shown, limit) {
  const values = (shown?.series.storage ?? []).map((value, index) => [shown.start + index * shown.stepSeconds * 1000, value]).filter(([, value]) => value !== null);
  if (values.length < 3) return "";
  const [[start, first], [end, last]] = [values[0], values.at(-1)];
  const grown = last - first;
  const period = `In the last ${duration((end - start) / 1000)} the store has`;
  if (Math.abs(grown) < 1024) return `${period} not grown.`;
  if (grown < 0) return `${period} shrunk by ${bytes(-grown)}.`;
  const left = (Math.max(0, limit - last) / grown) * ((end - start) / 1000);
  // A minute of growth predicts nothing about years.
  const rest = end - start >= 60000 && left < 366 * 86400 ? `; at this rate it is full in ${duration(left)}` : "";
  return `${period} grown by ${bytes(grown)}${rest}.`;
}
