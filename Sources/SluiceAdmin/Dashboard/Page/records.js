// Records of a topic, a page at a time: #/topics/NAME/records?from=…|before=…&key=…&text=…&count=…
let browsed = null;
let shownPage = null;
// Answers to earlier requests are ignored.
let asked = 0;

const recordsAddress = (name, parameters) => {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined)).toString();
  return `#/topics/${encodeURIComponent(name)}/records${query ? `?${query}` : ""}`;
};

// The start, as in the form: a word and its value.
const starts = { newest: "", earliest: "", offset: "an offset", before: "an offset", time: "2026-02-03 04:05:06, or -10m", last: "a number" };

function openRecords(name, query) {
  browsed = { name, ...Object.fromEntries(new URLSearchParams(query)) };
  const [word, ...rest] = (browsed.from || "").split(":");
  const start = browsed.before !== undefined ? "before" : word in starts ? word : "newest";
  $("records-topic").href = `#/topics/${encodeURIComponent(name)}`;
  setText($("records-topic"), name);
  $("records-start").value = start;
  $("records-place").value = start === "before" ? browsed.before : rest.join(":");
  $("records-key").value = browsed.key ?? "";
  $("records-text").value = browsed.text ?? "";
  $("records-count").value = browsed.count || "20";
  showStart();
  loadRecords();
}

function showStart() {
  const hint = starts[$("records-start").value];
  $("records-place").placeholder = hint;
  $("records-place").parentElement.hidden = !hint;
}

async function loadRecords() {
  const question = asked += 1;
  const { name, ...parameters } = browsed;
  const query = new URLSearchParams(parameters).toString();
  setText($("records-note"), "Looking…");
  try {
    const response = await fetch(`${topicPath(name)}/records${query ? `?${query}` : ""}`);
    const page = await response.json();
    if (question !== asked) return;
    if (!response.ok) throw new Error(page.error || `status ${response.status}`);
    showPage(page);
  } catch (error) {
    if (question !== asked) return;
    shownPage = null;
    showPagers();
    $("records-list").replaceChildren();
    setText($("records-range"), "");
    setText($("records-note"), `They can't be shown: ${error.message}`);
  }
}

// The offsets from one on and before another.
function offsets(from, end) {
  const last = number(end) - 1;
  return last > number(from) ? `offsets ${grouped.format(from)} to ${grouped.format(last)}` : `offset ${grouped.format(from)}`;
}

function showPage(page) {
  shownPage = page;
  const isFilter = browsed.key !== undefined || browsed.text;
  const kept = number(page.nextOffset) - number(page.firstOffset);
  setText($("records-range"), kept ? `${offsets(page.firstOffset, page.nextOffset)} ${kept === 1 ? "is" : "are"} kept` : "none are kept");
  const facts = [];
  if (number(page.through) > number(page.from)) facts.push(`${isFilter ? "Searched" : "Shown"}: ${offsets(page.from, page.through)}.`);
  if (isFilter) facts.push(`${plural(page.records.length, "record", "records")} found among ${count(number(page.scanned.records))}, ${bytes(number(page.scanned.bytes))}.`);
  if (page.scanned.stopped) facts.push(`The search has stopped at its limit; ${browsed.from ? "Newer" : "Older"} continues it.`);
  else if (!page.records.length && !isFilter) facts.push("There is no record here.");
  setText($("records-note"), facts.join(" "));
  $("records-list").replaceChildren(...page.records.toReversed().map(recordItem));
  showPagers();
}

function showPagers() {
  const page = shownPage;
  $("records-older").disabled = !page || number(page.from) <= number(page.firstOffset);
  $("records-newer").disabled = !page || number(page.through) >= number(page.nextOffset);
}

// The address of another position with the same filter.
function browse(place) {
  const { name, key, text, count } = browsed;
  const address = recordsAddress(name, { ...place, text, count });
  const full = key === undefined ? address : `${address}${address.includes("?") ? "&" : "?"}${new URLSearchParams({ key })}`;
  if (location.hash === full) loadRecords();
  else go(full);
}

const plain = (value) => (value.text ?? value.hex) + (value.cut ? "…" : "");
const dump = (hex) => (hex.match(/.{1,64}/g) || []).map((line) => line.match(/.{1,4}/g).join(" ")).join("\n");

// JSON with line breaks; null for other text.
function pretty(text) {
  if (!/^\s*[[{]/.test(text)) return null;
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return null; }
}

// A line, followed by the whole record.
function recordItem(record) {
  const payload = record.payload;
  const time = new Date(record.time).toISOString().replace("T", " ").replace("Z", "");
  const preview = payload.size ? plain(payload).slice(0, 300) : "empty";
  const line = make(
    "summary", {}, make("span", { class: "offset" }, `#${record.offset}`), make("time", { datetime: new Date(record.time).toISOString(), title: "UTC" }, time),
    make("span", { class: record.key ? "key-of" : "key-of quiet", title: "key" }, record.key ? plain(record.key) : "no key"), make("span", { class: "size" }, bytes(number(payload.size))),
    make("span", { class: `preview mono${payload.size ? "" : " quiet"}` }, preview));
  const details = make("details", {}, line);
  details.addEventListener("toggle", () => {
    if (details.childElementCount > 1) return;
    const text = payload.text === undefined ? dump(payload.hex) : (payload.cut ? null : pretty(payload.text)) ?? payload.text;
    const headers = (record.headers || []).map((each) => make("tr", {}, make("th", { scope: "row" }, each.name), make("td", { class: "mono" }, plain(each))));
    details.append(make(
      "div", { class: "whole" },
      headers.length ? make("table", {}, make("caption", { class: "hidden" }, "Headers"), make("tbody", {}, ...headers)) : null,
      payload.size ? make("pre", { class: "mono", tabindex: "0" }, text) : make("p", { class: "facts" }, "There is no payload."),
      payload.cut ? make("p", { class: "facts" }, `The beginning of ${bytes(number(payload.size))}.`) : null,
      payload.text === undefined ? make("p", { class: "facts" }, "Bytes that aren't text, in hexadecimal.") : null));
  });
  return make("li", {}, details);
}

function publishRecord() {
  const { name } = browsed;
  ask({
    title: `Publish to ${name}`, confirm: "Publish",
    fields: [
      { name: "payload", label: "Payload", isLong: true }, { name: "key", label: "Key", hint: "none" },
      { name: "headers", label: "Headers", hint: "name: value, one in a line", isLong: true, rare: true },
    ],
    run: async (values) => {
      const headers = values.headers.split("\n").filter((line) => line.trim()).map((line) => {
        const colon = line.indexOf(":");
        if (colon < 1) throw new Error(`'${line}' isn't a header: write name: value.`);
        return { name: line.slice(0, colon).trim(), text: line.slice(colon + 1).trim() };
      });
      const key = values.key ? { key: { text: values.key } } : {};
      await act("POST", `${topicPath(name)}/records`, { ...key, headers, payload: { text: values.payload } });
      browse({});
    },
  });
}

$("records-start").addEventListener("change", showStart);
$("records-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const [start, place] = [$("records-start").value, $("records-place").value.trim()];
  const from = start === "newest" || start === "before" ? "" : starts[start] ? `${start}:${place}` : start;
  const next = { name: browsed.name, text: $("records-text").value, count: $("records-count").value === "20" ? "" : $("records-count").value };
  if ($("records-key").value) next.key = $("records-key").value;
  browsed = next;
  browse(start === "before" ? { before: place } : { from });
});
$("records-older").addEventListener("click", () => browse({ before: shownPage.from }));
$("records-newer").addEventListener("click", () => browse({ from: `offset:${shownPage.through}` }));
$("records-newest").addEventListener("click", () => browse({}));
$("publish-record").hidden = !mayAct;
$("publish-record").addEventListener("click", publishRecord);
