// What is shown of the topic that is open: its streams, its settings, its last records.
extension DashboardScript {
  /// Subscribers and producers.
  static let streams = #"""
    // What each stream had been sent, or had sent, some seconds ago: what is drawn is a while, not all of the past.
    const drawnSeconds = 10;
    let past = new Map();

    function recently(stream, total) {
      const key = `${stream.connection}:${stream.stream}`;
      const values = past.get(key) || [];
      if (values.tick !== tick) values.push(total);
      values.tick = tick;
      if (values.length > drawnSeconds) values.shift();
      past.set(key, values);
      return Math.max(0, total - values[0]);
    }

    // How much of the demand was met in the last seconds, and how much is open: one bar, to the scale of the table's longest.
    function demandBar(met, open, scale, label) {
      const bar = make("div", { class: "demand", role: "img", "aria-label": label });
      if (met > 0) bar.append(make("i", { class: "sent" }));
      if (open > 0) bar.append(make("i", { class: open === Infinity ? "owed any" : "owed" }));
      const share = (value) => `${(value / scale) * 100}%`;
      for (const part of bar.children) {
        if (part.className === "sent") part.style.width = open === Infinity ? `${Math.min(50, (met / scale) * 50)}%` : share(met);
        else if (open === Infinity) part.style.flex = "1";
        else part.style.width = `max(2px, ${share(open)})`;
      }
      return bar;
    }

    function scaleOf(pairs) {
      return Math.max(1, ...pairs.map(([met, open]) => met + (open === Infinity ? 0 : open)));
    }

    const head = (...names) => make("thead", {}, make("tr", {}, ...names.map((name) =>
      make("th", { scope: "col", class: name.startsWith("#") ? "n" : "" }, name.replace("#", "")))));
    const cell = (text, kind) => make("td", { class: kind || "n" }, text);

    function subscribersTable(list, total) {
      const measured = list.map((each) => [recently(each, number(each.sent)), number(each.outstanding)]);
      const scale = scaleOf(measured);
      const rows = list.map((each, index) => {
        const [met, open] = measured[index];
        const words = open === Infinity ? "wants any number" : open === 0 ? "asks for nothing" : `asks for ${count(open)} more`;
        const holds = number(each.holdingSeconds) > 0;
        const state = [
          each.state, each.blocked ? "doesn't read" : "", 
          holds ? `holds up producers for ${since(each.holdingSeconds)} (${limits[each.holdingLimit] || each.holdingLimit})` : "",
          each.heldLastFiveMinutes > 0 ? `held them up ${shares(each)}` : "",
        ].filter(Boolean).join(", ");
        return make(
          "tr", { class: holds ? "holding" : "" }, make("th", { scope: "row" }, `${who(each)} `, make("span", { class: "quiet" }, `on ${each.connection}`)),
          make(
            "td", {}, demandBar(met, open, scale, `${words}; got ${count(met)} in the last ${drawnSeconds} seconds`),
            make("span", { class: "demand-text" }, words)),
          make("td", { class: holds || each.blocked ? "warn" : "" }, state),
          cell(count(number(each.nextOffset))), cell(count(number(each.lag))), cell(count(number(each.sent))));
      });
      return streamsTable(
        rows, head("Subscriber", "Demand", "State", "#Next record", "#Behind", "#Sent"), "Subscribers", list.length, total, "Nobody subscribes.");
    }

    function producersTable(list, total) {
      const measured = list.map((each) => [recently(each, number(each.received)), number(each.open)]);
      const scale = scaleOf(measured);
      const rows = list.map((each, index) => {
        const [met, open] = measured[index];
        const waits = number(each.waitingSeconds) > 0;
        const words = open === Infinity ? "may send any number" : open === 0 ? "may send nothing" : `may send ${count(open)} more`;
        return make(
          "tr", { class: waits ? "holding" : "" }, make("th", { scope: "row" }, `${who(each)} `, make("span", { class: "quiet" }, `on ${each.connection}`)),
          make(
            "td", {}, demandBar(met, open, scale, `${words}; sent ${count(met)} in the last ${drawnSeconds} seconds`),
            make("span", { class: "demand-text" }, words)),
          make("td", { class: waits ? "warn" : "" }, waits ? `waits for ${duration(each.waitingSeconds)}${each.waitReason ? `: ${each.waitReason}` : ""}` : "may send"),
          cell(count(number(each.granted))), cell(count(number(each.received))));
      });
      return streamsTable(
        rows, head("Producer", "Grant", "State", "#Granted", "#Received"), "Producers", list.length, total, "Nobody publishes.");
    }

    function streamsTable(rows, header, caption, shown, total, nobody) {
      if (!rows.length) return make("p", { class: "facts" }, nobody);
      const more = total > shown ? make("tr", {}, make("td", { colspan: "6", class: "quiet" }, `These are ${shown} of ${count(total)}.`)) : "";
      return make("table", {}, make("caption", { class: "hidden" }, caption), header, make("tbody", {}, ...rows, more));
    }
    """#

  static let detail = #"""
    let detail = null;

    function detailRow() {
      if (detail) return detail.row;
      const scroll = (label) => make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label });
      const parts = {
        facts: make("p", { class: "facts" }, "Loading…"), subscribers: scroll("Subscribers"), producers: scroll("Producers"),
        button: make("button", { type: "button", class: "plain" }, "Show the last records"),
        note: make("p", { class: "facts", role: "status" }), records: make("ul", { class: "records", hidden: true }),
      };
      const name = opened;
      const legend = (met, open) =>
        make("p", { class: "legend" }, `Filled: ${met} in the last ${drawnSeconds} seconds. Pale: ${open} beyond that.`);
      parts.button.addEventListener("click", () => showRecords(name));
      const cell = make(
        "td", { colspan: "10", id: "detail" }, parts.facts,
        make("h3", {}, "Subscribers"), legend("sent", "asked for"), parts.subscribers,
        make("h3", {}, "Producers"), legend("received", "granted"), parts.producers, make("h3", {}, "Records"), parts.button, parts.note, parts.records);
      detail = { ...parts, row: make("tr", { class: "detail" }, cell) };
      return detail.row;
    }

    function openTopic(name) {
      opened = name;
      detail = null;
      past = new Map();
      showTopics(false);
      watch();
    }

    function showDetail(topic) {
      if (!detail || topic.name !== opened) return;
      if (topic.state === "missing") return setText(detail.facts, "There is no such topic any more.");
      const facts = [];
      if (topic.failure) facts.push(`failed: ${topic.failure.message} (${topic.failure.code})`);
      facts.push(`records ${count(number(topic.firstOffset))} to ${count(number(topic.nextOffset))}`, bytes(number(topic.bytes)));
      for (const [key, value] of Object.entries(topic.settings)) facts.push(`${key} ${value}`);
      for (const [limit, amount] of Object.entries(topic.dropped)) {
        if (number(amount.records)) facts.push(`${count(number(amount.records))} records (${bytes(number(amount.bytes))}) dropped by ${limit}`);
      }
      const traffic = topic.traffic;
      if (number(traffic.missed)) facts.push(`${count(number(traffic.missed))} missed`);
      if (traffic.starvedSeconds > 0) facts.push(`subscribers without demand for ${duration(traffic.starvedSeconds)} in all`);
      if (traffic.heldUpSeconds > 0) facts.push(`producers held up for ${duration(traffic.heldUpSeconds)} in all`);
      if (detail.shownFacts !== facts.join()) {
        detail.shownFacts = facts.join();
        detail.facts.replaceChildren(...facts.map((fact) => make("span", {}, fact)));
      }
      detail.subscribers.replaceChildren(subscribersTable(topic.subscribers, topic.subscriptions));
      detail.producers.replaceChildren(producersTable(topic.producers, topic.publications));
    }

    async function showRecords(name) {
      const shown = detail;
      setText(shown.button, "Show the last records again");
      try {
        const response = await fetch(`/api/topics/${encodeURIComponent(name)}/records?count=20`);
        const answer = await response.json();
        if (!response.ok) throw new Error(answer.error || `status ${response.status}`);
        setText(shown.note, answer.records.length ? "" : "There are none in memory that can be shown.");
        shown.records.hidden = !answer.records.length;
        shown.records.replaceChildren(...answer.records.reverse().map(recordItem));
      } catch (error) {
        setText(shown.note, `They can't be shown: ${error.message}`);
        shown.records.hidden = true;
      }
    }

    function recordItem(record) {
      const facts = [`#${record.offset}`, new Date(record.time).toISOString().replace("T", " ").replace("Z", ""), bytes(number(record.payload.size))];
      if (record.key) facts.push(`key ${plain(record.key)}`);
      for (const header of record.headers || []) facts.push(`${header.name}: ${plain(header)}`);
      const payload = record.payload;
      const body = payload.text ?? (payload.hex.match(/.{1,64}/g) || []).map((line) => line.match(/.{1,4}/g).join(" ")).join("\n");
      const cut = payload.cut ? "\n…" : "";
      return make(
        "li", {}, make("p", { class: "head" }, ...facts.map((fact) => make("span", {}, fact))),
        payload.size ? make("pre", { class: "mono", tabindex: "0" }, body + cut) : make("p", { class: "head" }, "empty"));
    }

    const plain = (value) => (value.text ?? value.hex) + (value.cut ? "…" : "");
    """#

  static let connections = #"""
    const connectionLines = new Map();

    function showConnections() {
      const wanted = connections.map((connection) => {
        let line = connectionLines.get(connection.id);
        if (!line) {
          line = make("tr", {}, make("th", { scope: "row" }), ...["", "", "n", "n", "n", "n", ""].map((kind) => make("td", { class: kind })));
          connectionLines.set(connection.id, line);
        }
        const texts = [
          `${connection.client || "no name"} on ${connection.id}`, connection.identity || "–", connection.peer, count(connection.subscriptions),
          count(connection.publications), bytes(connection.buffered), duration(connection.ageSeconds), connection.security || "–",
        ];
        texts.forEach((text, index) => setText(line.children[index], text));
        return line;
      });
      const ids = new Set(connections.map((connection) => connection.id));
      for (const id of connectionLines.keys()) if (!ids.has(id)) connectionLines.delete(id);
      arrange($("connection-rows"), wanted);
      const all = number(broker.connections);
      setText($("connections-shown"), all > connections.length ? `the first ${connections.length} of ${count(all)}` : count(all));
    }
    """#

  /// The stream of samples, and what is said when it stops.
  static let events = #"""
    let stream = null;
    let retry = null;

    function showState(state, text) {
      setAttribute($("state"), "data-state", state);
      setText($("state-text"), text);
      document.body.classList.toggle("stale", state === "lost");
    }

    function watch() {
      clearTimeout(retry);
      if (stream) stream.close();
      stream = new EventSource(opened === null ? "/api/events" : `/api/events?topic=${encodeURIComponent(opened)}`);
      stream.addEventListener("sample", (event) => {
        const { sum, changed } = take(JSON.parse(event.data));
        showState("live", "Live");
        showFigures(sum);
        showHolds();
        showTopics(changed);
        showConnections();
      });
      stream.addEventListener("topic", (event) => showDetail(JSON.parse(event.data)));
      stream.addEventListener("error", lose);
    }

    function lose() {
      const since = sampledAt ? ` This is what was there at ${new Date(sampledAt).toLocaleTimeString()}.` : "";
      showState("lost", `The connection to the broker is lost; trying again.${since}`);
      // A browser gives up where it was answered, but not with events.
      if (stream.readyState === EventSource.CLOSED) {
        clearTimeout(retry);
        retry = setTimeout(watch, 3000);
      }
    }

    // A connection may be lost without anybody being told.
    setInterval(() => {
      if (sampledAt && Date.now() - sampledAt > 6000) { lose(); if (Date.now() - sampledAt > 15000 && !document.hidden) watch(); }
    }, 2000);

    watch();
    """#
}
