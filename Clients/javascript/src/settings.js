// Settings of topics, and the broker's reports on topics, cursors and itself.

const KEYS = {
  replayRecords: 1, replayBytes: 2, replayAge: 3, scope: 4, flow: 5, connect: 6, bufferRecords: 7, bufferBytes: 8,
  withoutSubscribers: 9, lag: 10, compact: 11, autoDelete: 12, storage: 13, sync: 14, whenProducerLost: 15,
};
const NAMES = new Map(Object.entries(KEYS).map(([name, key]) => [key, name]));
const WORDS = {
  scope: ["forever", "connected"],
  flow: ["free", "lossless", "fastest"],
  withoutSubscribers: ["buffer", "hold", "drop"],
  lag: ["skip", "fail"],
  storage: ["memory", "durable"],
};
const SPECIAL = { connect: { immediate: 0, manual: Infinity }, sync: { always: 0, os: Infinity } };

/** The settings as keys and values of the protocol. Throws TypeError for a setting or a value that doesn't exist. */
export function encodeSettings(settings = {}) {
  return Object.entries(settings)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => {
      if (!Object.hasOwn(KEYS, name)) throw new TypeError(`${name} isn't a setting of a topic; there are ${Object.keys(KEYS).join(", ")}`);
      return { key: KEYS[name], value: encodeSetting(name, value) };
    });
}

function encodeSetting(name, value) {
  const words = WORDS[name];
  if (words !== undefined) {
    const index = words.indexOf(value);
    if (index < 0) throw new TypeError(`${name}: ${JSON.stringify(value)} isn't one of ${words.join(", ")}`);
    return index;
  }
  if (typeof value === "string") {
    const special = SPECIAL[name] ?? {};
    if (!Object.hasOwn(special, value)) throw new TypeError(`${name}: ${JSON.stringify(value)} isn't a value of this setting`);
    return special[value];
  }
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value === Infinity && name !== "whenProducerLost") return Infinity;
  if (!Number.isSafeInteger(value) || value < 0) throw new TypeError(`${name}: ${value} isn't a whole number from 0 up`);
  return value;
}

/** The settings of a TOPIC_INFO. Settings that this version doesn't know are left out. */
function decodeSettings(pairs) {
  const settings = {};
  for (const { key, value } of pairs) {
    const name = NAMES.get(key);
    if (name === undefined) continue;
    const special = Object.entries(SPECIAL[name] ?? {}).find(([, number]) => number === value)?.[0];
    if (WORDS[name] !== undefined) settings[name] = WORDS[name][value] ?? String(value);
    else if (special !== undefined) settings[name] = special;
    else settings[name] = name === "compact" || name === "autoDelete" ? value !== 0 : value;
  }
  return settings;
}

export function topicSummary(values) {
  return {
    name: values.topic,
    epoch: values.epoch,
    floor: values["first offset"],
    head: values["next offset"],
    records: values.records,
    bytes: values.bytes,
    state: ["open", "completed", "failed"][values.state],
    failure: values.state === 2 ? { code: values.code, message: values.message } : undefined,
    subscriptions: values.subscriptions,
    publications: values.publications,
    isDurable: values.storage === 1,
  };
}

export function topicInfo({ summary, settings, ...details }) {
  return { ...topicSummary(summary), settings: decodeSettings(settings), details };
}

export function consumerInfo(values) {
  return {
    name: values.name,
    kind: values.kind === 1 ? "group" : "cursor",
    nextOffset: values["next offset"],
    lag: Math.max(0, values.end - values["next offset"]),
    members: values.members,
    unacknowledged: values.outstanding,
    redeliveries: values.redeliveries,
    deadLetters: values["dead letters"],
    idle: values.idle,
    delayed: values.delayed,
    nextRetry: values["next retry"],
  };
}

export function connectionInfo(values) {
  const { connection, client, identity, peer, security, age, subscriptions, publications, received, sent } = values;
  return { id: connection, client, identity, peer, security, age, subscriptions, publications, receivedBytes: received, sentBytes: sent };
}

export function brokerInfo(values) {
  return {
    uptime: values.uptime,
    time: values.time,
    problems: values.problems.map(({ severity, kind, sentence, topic, since }) => ({
      severity: severity === 0 ? "critical" : "warning",
      kind,
      sentence,
      topic: topic || undefined,
      since,
    })),
    numbers: Object.fromEntries(values.numbers.map(({ name, value }) => [name, value])),
  };
}
