// The live tail of a topic: #/topics/NAME/tail?key=…&text=…. The page fetches the records that the visitor has requested, and none once the place is left.
const tailLimits = { demand: 1000, kept: 500, bytes: 1 << 20 };
let tail = null;

const tailAddress = (name, parameters = {}) => recordsAddress(name, parameters).replace(/\/records(?=\?|$)/, "/tail");

function openTail(name, query) {
  const filter = Object.fromEntries(new URLSearchParams(query));
  $("tail-topic").href = `#/topics/${encodeURIComponent(name)}`;
  setText($("tail-topic"), name);
  $("tail-key").value = filter.key ?? "";
  $("tail-text").value = filter.text ?? "";
  if (tail?.name !== name) $("tail-list").replaceChildren();
  beginTail(name);
}

// From the next record on, with the filter of the form.
function beginTail(name) {
  closeTail();
  tail = {
    name, filter: tailFilter(), next: null, head: null, demand: 0, requested: 0, received: 0, bytes: 0, passed: 0, note: "",
    timer: setInterval(() => fetchTail(), 1000),
  };
  fetchTail();
}

function tailFilter() {
  const filter = {};
  if ($("tail-key").value) filter.key = $("tail-key").value;
  if ($("tail-text").value) filter.text = $("tail-text").value;
  return filter;
}

function closeTail() {
  if (tail) clearInterval(tail.timer);
  tail = null;
}

function requestTail() {
  if (JSON.stringify(tail.filter) !== JSON.stringify(tailFilter())) beginTail(tail.name);
  // A request that is met begins a new count.
  if (tail.demand === 0) [tail.requested, tail.received] = [0, 0];
  const more = Math.min(Number($("tail-count").value), tailLimits.demand - tail.demand);
  tail.demand += more;
  tail.requested += more;
  tail.bytes = 0;
  tail.note = "";
  fetchTail();
}

function stopTail(note) {
  tail.demand = 0;
  tail.note = note;
  showTail();
}

// Without demand it only learns once where the topic's end is.
async function fetchTail() {
  const mine = tail;
  if (document.hidden || mine.isLoading || mine.next !== null && mine.demand === 0) return showTail();
  mine.isLoading = true;
  let isFull = false;
  const place = mine.next === null ? { count: 1 } : { ...mine.filter, from: `offset:${mine.next}`, count: Math.min(mine.demand, 100) };
  try {
    const response = await fetch(`${topicPath(mine.name)}/records?${new URLSearchParams(place)}`);
    const page = await response.json();
    if (!response.ok) throw new Error(page.error || `status ${response.status}`);
    if (tail === mine) take(page);
  } catch (error) {
    if (tail === mine) stopTail(`Stopped: ${error.message}.`);
  }
  mine.isLoading = false;
  // The rest of a request for more records than an answer has.
  if (tail === mine && isFull && mine.demand > 0) fetchTail();

  function take(page) {
    const [first, head] = [number(page.firstOffset), number(page.nextOffset)];
    mine.head = head;
    if (mine.next === null || mine.next > head) {
      // A topic that was created again begins anew.
      mine.next = head;
      return showTail();
    }
    if (first > mine.next) mine.passed += first - mine.next;
    // A request may have been stopped meanwhile.
    const records = page.records.slice(0, mine.demand);
    mine.next = records.length < page.records.length ? number(records.at(-1)?.offset ?? mine.next - 1) + 1 : Math.max(number(page.through), first);
    mine.demand -= records.length;
    mine.received += records.length;
    mine.bytes += records.reduce((sum, each) => sum + (each.payload.text ?? each.payload.hex).length, 0);
    isFull = records.length === place.count;
    $("tail-list").prepend(...records.toReversed().map(recordItem));
    while ($("tail-list").childElementCount > tailLimits.kept) $("tail-list").lastElementChild.remove();
    if (mine.demand > 0 && mine.bytes >= tailLimits.bytes) return stopTail(`Stopped at ${bytes(tailLimits.bytes)}. Request more to continue.`);
    showTail();
  }
}

function showTail() {
  // The samples know the topic's end while nothing is fetched.
  const head = Math.max(tail.head ?? 0, number(topics.get(tail.name)?.row.nextOffset ?? 0));
  const lag = tail.next === null ? 0 : head - tail.next;
  const state = tail.note || (tail.demand > 0 ? "Waiting for records." : tail.requested ? "The request is met. Request more to continue." : "Request records to see the next ones.");
  setText($("tail-note"), state);
  const facts = [tail.requested && `${count(tail.received)} of ${count(tail.requested)} received`, lag > 0 && `lag ${plural(lag, "record", "records")}`, tail.passed && `${plural(tail.passed, "record", "records")} dropped by retention before they were shown`];
  setText($("tail-numbers"), facts.filter(Boolean).join(", "));
  $("tail-stop").disabled = tail.demand === 0;
  $("tail-skip").disabled = lag === 0;
}

$("tail-form").addEventListener("submit", (event) => { event.preventDefault(); requestTail(); });
$("tail-stop").addEventListener("click", () => stopTail("Stopped."));
$("tail-skip").addEventListener("click", () => { tail.next = null; fetchTail(); });
