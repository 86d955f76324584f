// What the page knows of the broker, and what it says of it at the top.
extension DashboardScript {
  /// Samples become rates.
  static let model = #"""
    const historyLength = 180;
    const topics = new Map();
    const history = { in: new Series(historyLength), out: new Series(historyLength), connections: new Series(historyLength) };
    let broker = null;
    let connections = [];
    let omitted = 0;
    let sampledAt = 0;
    let tick = 0;

    function take(sample) {
      const seconds = broker ? (sample.broker.time - broker.time) / 1000 : 0;
      broker = sample.broker;
      connections = sample.connections;
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
        // What isn't in a sample is as it was.
        if (topic.tick !== tick) topic.in = topic.out = topic.inBytes = topic.outBytes = 0;
        if (topic.line || topic.in + topic.out > 0) {
          topic.line = topic.line || new Series(120);
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
    """#

  /// The row of figures.
  static let figures = #"""
    const latencies = [];

    function showFigures(sum) {
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
      setText(
        $("connections-more"),
        `${plural(number(broker.metrics.subscriptions), "subscription", "subscriptions")}, `
          + plural(number(broker.metrics.publications), "publication", "publications"));
      drawLine($("connections-line"), history.connections);
    }

    // Of the last minute; of all the time where there was nothing in it.
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

    const isTroubled = (storage) => Boolean(storage) && storage.state !== "working";

    function showStorage(storage) {
      $("storage-figure").hidden = !storage;
      if (!storage) return;
      const limit = number(storage.limitBytes);
      const [value, unit] = bytes(number(storage.usedBytes)).split(" ");
      setText($("storage"), value);
      setText($("storage-unit"), limit === Infinity ? unit : `${unit} of ${bytes(limit)}`);
      const free = storage.availableBytes === null ? "" : `disk has ${bytes(number(storage.availableBytes))} left`;
      setText($("storage-more"), isTroubled(storage) ? `${storage.state} for ${duration(storage.sinceSeconds)}` : free);
      $("storage-more").classList.toggle("warn", isTroubled(storage));
      const percent = Math.round(storage.fullness * 100);
      $("storage-meter").firstElementChild.style.width = `${percent}%`;
      setAttribute($("storage-meter"), "aria-label", limit === Infinity ? "The store has no limit" : `${percent} percent of the store's limit are used`);
    }

    function storageLine(storage) {
      const publishers = number(storage.waitingPublishers);
      const who = publishers ? `${plural(publishers, "publisher waits", "publishers wait")}` : "publishers of durable topics wait";
      return make(
        "li", { class: "hold" }, make("b", {}, storage.state === "full" ? "The storage is full" : "The storage fails"),
        ` for ${duration(storage.sinceSeconds)}: ${who}. ${storage.message}.`);
    }

    function showMemory(metrics, resident) {
      const used = number(metrics.memory_used);
      const ceiling = number(metrics.memory_ceiling);
      const [value, unit] = bytes(used).split(" ");
      setText($("memory"), value);
      setText($("memory-unit"), ceiling ? `${unit} of ${bytes(ceiling)}` : unit);
      setText($("memory-more"), `process ${bytes(resident)}`);
      $("memory-meter").firstElementChild.style.width = ceiling ? `${Math.min(100, (used / ceiling) * 100)}%` : "0";
      setAttribute(
        $("memory-meter"), "aria-label",
        ceiling ? `${Math.round((used / ceiling) * 100)} percent of the ceiling, at which producers wait` : "There is no ceiling");
    }
    """#

  /// Who holds up whom, in words.
  static let holds = #"""
    const shownHolds = 8;

    function showHolds() {
      const waiting = [...topics.values()].filter((topic) => number(topic.row.heldUpSeconds) > 0 || topic.row.holder)
        .sort((left, right) => number(right.row.heldUpSeconds) - number(left.row.heldUpSeconds));
      const lines = waiting.slice(0, shownHolds).map((topic) => holdLine(topic.row));
      if (isTroubled(broker.storage)) lines.unshift(storageLine(broker.storage));
      if (waiting.length > shownHolds) lines.push(make("li", { class: "quiet" }, `and ${plural(waiting.length - shownHolds, "topic", "topics")} more`));
      if (!lines.length) lines.push(make("li", { class: "quiet" }, "Nobody waits."));
      const list = $("holds");
      // Only what has changed is touched, so that a reader isn't thrown back.
      lines.forEach((line, index) => {
        const old = list.children[index];
        if (!old) list.append(line);
        else if (old.textContent !== line.textContent) old.replaceWith(line);
      });
      while (list.children.length > lines.length) list.lastElementChild.remove();
    }

    function holdLine(row) {
      const name = make("b", {}, row.name);
      const waited = number(row.heldUpSeconds);
      const holder = row.holder;
      const turnedAway = number(row.waitingForStorage);
      if (turnedAway) {
        return make(
          "li", { class: "hold" }, `${plural(turnedAway, "publisher", "publishers")} of `, name, ` ${turnedAway === 1 ? "waits" : "wait"} for the storage, `,
          `for ${duration(waited)}.`);
      }
      if (!holder) {
        const why = row.subscriptions ? "" : ", and nobody is subscribed";
        return make("li", { class: "hold" }, "The producers of ", name, ` have waited for demand for ${duration(waited)}${why}.`);
      }
      const limit = holder.blocked ? "it doesn't read what it was sent" : limits[holder.holdingLimit] || holder.holdingLimit;
      return make(
        "li", { class: "hold" }, make("b", {}, who(holder)), ` on connection ${holder.connection} holds up the producers of `, name,
        ` for ${since(number(holder.holdingSeconds))}: ${limit}; ${shares(holder)}.`);
    }

    // The limit that stops producers, by its name.
    const limits = {
      "demand": "it has asked for nothing more", "buffer": "records that it has not taken fill the buffer",
      "replay": "records that are kept for its replay fill the buffer", "group demand": "its group has asked for nothing more",
      "group buffer": "records that its group has not taken fill the buffer",
      "group replay": "records that are kept for the replay of its group fill the buffer",
    };

    // For which part of the last minutes something has stopped producers.
    const percent = (share) => (share > 0 && share < 0.01 ? `${(share * 100).toFixed(1)} %` : `${Math.floor(share * 100 + 1e-9)} %`);
    const shares = (hold) => `${percent(hold.heldLastMinute)} of the last minute, ${percent(hold.heldLastFiveMinutes)} of the last five`;
    """#
}
