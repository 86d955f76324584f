// The state of the page: samples become rates.
const historyLength = 180;
const topics = new Map();
const history = { in: new Series(historyLength), out: new Series(historyLength), connections: new Series(historyLength) };
let broker = null;
let problems = [];
let problemKinds = [];
let omitted = 0;
let sampledAt = 0;
let tick = 0;

function take(sample) {
  const seconds = broker ? (sample.broker.time - broker.time) / 1000 : 0;
  broker = sample.broker;
  problems = sample.problems;
  problemKinds = sample.problemKinds;
  omitted = sample.omitted;
  sampledAt = Date.now();
  tick += 1;
  let changed = false;
  for (const row of sample.topics) {
    let topic = topics.get(row.name);
    if (!topic) {
      topic = { name: row.name, in: 0, out: 0, inBytes: 0, outBytes: 0, line: null, row: null };
      topics.set(row.name, topic);
      changed = true;
    }
    measure(topic, row, seconds);
    topic.tick = tick;
  }
  const gone = sample.all ? [...topics.values()].filter((topic) => topic.tick !== tick).map((topic) => topic.name) : sample.gone;
  for (const name of gone) { topics.delete(name); changed = true; }
  const sum = { in: 0, out: 0, inBytes: 0, outBytes: 0 };
  for (const topic of topics.values()) {
    // A sample leaves out unchanged topics.
    if (topic.tick !== tick) topic.in = topic.out = topic.inBytes = topic.outBytes = 0;
    if (topic.line || topic.in + topic.out > 0) {
      topic.line = topic.line || quietLine();
      topic.line.push(topic.in + topic.out);
    }
    for (const key of Object.keys(sum)) sum[key] += topic[key];
  }
  if (seconds > 0) {
    history.in.push(sum.in);
    history.out.push(sum.out);
  }
  history.connections.push(number(broker.connections));
  return { sum, changed };
}

// Until its first record a topic had no traffic since the page was loaded.
function quietLine() {
  const line = new Series(120);
  for (let second = 2; second < Math.min(tick, 120); second += 1) line.push(0);
  return line;
}

function measure(topic, row, seconds) {
  const before = topic.row;
  topic.row = row;
  const isSame = before && before.epoch === row.epoch && seconds > 0;
  const per = (name) => (isSame ? Math.max(0, number(row.traffic[name]) - number(before.traffic[name])) / seconds : 0);
  topic.in = per("received");
  topic.out = per("sent");
  topic.inBytes = per("receivedBytes");
  topic.outBytes = per("sentBytes");
}
