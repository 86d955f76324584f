/// The values of the topics `$SYS/broker/…`, by the names and with the meanings that Mosquitto documents.
///
/// A value without a clock: ``update(_:now:)`` takes the time.
package struct MQTTSystemValues: Sendable {
  package struct Value: Hashable, Sendable {
    /// The topic's name in MQTT, and the broker's.
    package let topic: String
    package let brokerName: String
    package fileprivate(set) var text: String
    /// The ``revision`` with which it got its text.
    package fileprivate(set) var revision: UInt64
  }

  /// In an order that doesn't change.
  package private(set) var values: [Value] = []
  /// Counts updates.
  package private(set) var revision: UInt64 = 0
  private let version: String
  private let start: UInt64
  private var last: UInt64
  private var lastCounters = [UInt64](repeating: 0, count: Self.loads.count)
  private var averages = [MQTTLoad](repeating: MQTTLoad(), count: Self.loads.count)

  /// Figures whose growth has averages, by what their topics have behind `load/`.
  private static let loads: [(name: String, counter: @Sendable (MQTTFigures) -> UInt64)] = [
    ("messages/received", { $0.traffic.packetsReceived }), ("messages/sent", { $0.traffic.packetsSent }),
    ("publish/received", { $0.traffic.publishesReceived }), ("publish/sent", { $0.traffic.publishesSent }),
    ("publish/dropped", { $0.publishesDropped }), ("bytes/received", { $0.traffic.bytesReceived }),
    ("bytes/sent", { $0.traffic.bytesSent }), ("sockets", { $0.traffic.sockets }),
    ("connections", { $0.traffic.connects }),
  ]

  /// - Parameters:
  ///   - version: what `$SYS/broker/version` says.
  ///   - start: when the broker started, in nanoseconds of the clock of ``update(_:now:)``.
  package init(version: String, start: UInt64) {
    self.version = version
    self.start = start
    last = start
  }

  /// Sets all values. Those whose text stays as it is keep their revision.
  package mutating func update(_ figures: MQTTFigures, now: UInt64) {
    revision += 1
    let now = max(now, last)
    if now > last {
      let seconds = Double(now - last) / 1e9
      for (index, load) in Self.loads.enumerated() {
        let counter = load.counter(figures)
        averages[index].update(growth: counter - min(counter, lastCounters[index]), seconds: seconds)
        lastCounters[index] = counter
      }
      last = now
    }
    var texts = texts(of: figures, uptime: (now - start) / 1_000_000_000)
    for (load, average) in zip(Self.loads, averages) {
      for (span, value) in zip(MQTTLoad.spans, average.averages) {
        texts.append(("load/\(load.name)/\(span.name)", MQTTLoad.text(value)))
      }
    }
    for (index, (name, text)) in texts.enumerated() {
      if index == values.count {
        let topic = MQTTSystemTopic.root + name
        let brokerName = (try? MQTTTopicName.brokerName(topic)) ?? ""
        values.append(Value(topic: topic, brokerName: brokerName, text: text, revision: revision))
      } else if values[index].text != text {
        (values[index].text, values[index].revision) = (text, revision)
      }
    }
  }

  private func texts(of figures: MQTTFigures, uptime: UInt64) -> [(name: String, text: String)] {
    let traffic = figures.traffic
    return [
      ("version", version), ("uptime", "\(uptime) seconds"),
      ("clients/connected", "\(figures.connected)"), ("clients/active", "\(figures.connected)"),
      ("clients/disconnected", "\(figures.disconnected)"), ("clients/inactive", "\(figures.disconnected)"),
      ("clients/maximum", "\(figures.mostConnected)"), ("clients/expired", "\(figures.expired)"),
      ("clients/total", "\(figures.connected + figures.disconnected)"),
      ("messages/received", "\(traffic.packetsReceived)"), ("messages/sent", "\(traffic.packetsSent)"),
      ("messages/stored", "\(figures.retained)"), ("store/messages/count", "\(figures.retained)"),
      ("store/messages/bytes", "\(figures.retainedBytes)"),
      ("retained messages/count", "\(figures.retained)"),
      ("publish/messages/received", "\(traffic.publishesReceived)"),
      ("publish/messages/sent", "\(traffic.publishesSent)"),
      ("publish/messages/dropped", "\(figures.publishesDropped)"),
      ("bytes/received", "\(traffic.bytesReceived)"), ("bytes/sent", "\(traffic.bytesSent)"),
      ("subscriptions/count", "\(figures.subscriptions)"),
      ("shared_subscriptions/count", "\(figures.sharedSubscriptions)"),
    ]
  }
}
