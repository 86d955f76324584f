import SluiceBroker
import SluiceWire
import TestSupport
import Testing

@testable import SluiceAdmin

@Suite struct MetricsTests {
  private func page(
    _ snapshot: BrokerSnapshot, limit: Int = 10, _ format: MetricsFormat = .prometheus
  ) -> [String] {
    var selection = TopicSelection(limit: limit)
    var consumers = ConsumerSelection(groups: 2, cursors: 1)
    return MetricsPage.text(
      snapshot, &selection, &consumers, ProgramNumbers(droppedLogLines: 3, refusedWatchers: 4),
      ProcessNumbers(),
      version: "1.2.3", format
    )
    .split(separator: "\n").map(String.init)
  }

  private var snapshot: BrokerSnapshot {
    var snapshot = BrokerSnapshot()
    snapshot.uptime = 1_500
    snapshot.topics = [
      TopicSnapshot("orders.eu") { topic in
        topic.traffic.received = 7
        topic.traffic.receivedBytes = 700
        topic.traffic.starved = 1_250
        topic.outstanding = 12
        topic.lag = 3
        topic.heldUp = 2_500
      },
      TopicSnapshot("a\"b\\c") { $0.outstanding = nil },
    ]
    snapshot.metrics = BrokerMetric.allCases.map { ($0, 5) }
    snapshot.latency.add(1_500)
    snapshot.latency.add(3_000_000)
    var turns = Histogram()
    turns.add(500)
    snapshot.loops = [LoopSnapshot(connections: 1, turns: turns), LoopSnapshot(connections: 2, turns: turns)]
    return snapshot
  }

  @Test func aTopicHasItsNumbers() {
    let lines = page(snapshot)
    for line in [
      "# TYPE sluice_topic_records_received_total counter",
      "sluice_topic_records_received_total{topic=\"orders.eu\"} 7",
      "sluice_topic_received_bytes_total{topic=\"orders.eu\"} 700",
      "sluice_topic_starved_seconds_total{topic=\"orders.eu\"} 1.25",
      "# TYPE sluice_topic_demand_outstanding gauge",
      "sluice_topic_demand_outstanding{topic=\"orders.eu\"} 12",
      "sluice_topic_lag_records{topic=\"orders.eu\"} 3",
      "sluice_topic_hold_age_seconds{topic=\"orders.eu\"} 2.5",
      "sluice_topics 2", "sluice_topics_summed 0", "sluice_uptime_seconds 1.5",
      "sluice_log_dropped_lines_total 3",
      "sluice_admin_refused_watchers_total 4", "sluice_build_info{version=\"1.2.3\"} 1",
    ] {
      #expect(lines.contains(line), "\(line)")
    }
  }

  @Test func theStoreHasItsNumbers() {
    var snapshot = snapshot
    #expect(!page(snapshot).contains { $0.contains("sluice_storage_") })
    var storage = StoreSnapshot()
    storage.state = .full
    storage.since = 2_500
    storage.limit = 1_000
    storage.fileBytes = 900
    storage.usedBytes = 750
    storage.availableBytes = 600
    storage.waiting = 2
    snapshot.storage = storage
    let lines = page(snapshot)
    for line in [
      "sluice_storage_limit_bytes 1000", "sluice_storage_file_bytes 900", "sluice_storage_used_bytes 750",
      "sluice_storage_disk_available_bytes 600", "sluice_storage_fullness_ratio 0.75",
      "sluice_storage_full 1",
      "sluice_storage_failing 0", "sluice_storage_trouble_seconds 2.5", "sluice_storage_waiting_publishers 2",
    ] {
      #expect(lines.contains(line), "\(line)")
    }
    storage.limit = nil
    snapshot.storage = storage
    #expect(page(snapshot).contains("sluice_storage_limit_bytes +Inf"))
  }

  @Test func whatIsDroppedIsCounted() {
    var snapshot = BrokerSnapshot()
    snapshot.topics = [
      TopicSnapshot("t") { topic in
        topic.traffic.dropped = 7
        topic.traffic.droppedBytes = 70
      }
    ]
    let lines = page(snapshot)
    #expect(lines.contains("sluice_topic_records_dropped_total{topic=\"t\"} 7"))
    #expect(lines.contains("sluice_topic_dropped_bytes_total{topic=\"t\"} 70"))
  }

  @Test func labelsAreEscapedAndAnyNumberIsInfinite() {
    #expect(page(snapshot).contains("sluice_topic_demand_outstanding{topic=\"a\\\"b\\\\\\\\c\"} +Inf"))
  }

  @Test func everyNumberOfTheBrokerIsThere() {
    let lines = page(snapshot)
    for metric in BrokerMetric.allCases {
      #expect(
        lines.contains { $0.hasPrefix("sluice_broker_\(metric.name)") && $0.hasSuffix(" 5") }, "\(metric)")
    }
    #expect(lines.contains("sluice_broker_connections_accepted_total 5"))
    #expect(lines.contains("sluice_broker_memory_used_bytes 5"))
  }

  @Test func bucketsAddUp() throws {
    let lines = page(snapshot)
    func counts(_ name: String) -> [UInt64] {
      lines.filter { $0.hasPrefix("\(name)_bucket") }.compactMap {
        UInt64($0.split(separator: " ").last ?? "")
      }
    }
    let counts = counts("sluice_delivery_latency_seconds")
    #expect(counts.count == Histogram.buckets)
    #expect(counts == counts.sorted())
    #expect(counts.last == 2)
    #expect(lines.contains("sluice_delivery_latency_seconds_bucket{le=\"2.048e-06\"} 1"))
    #expect(lines.contains("sluice_delivery_latency_seconds_bucket{le=\"+Inf\"} 2"))
    #expect(lines.contains("sluice_delivery_latency_seconds_count 2"))
    #expect(lines.contains("sluice_delivery_latency_seconds_sum 0.0030015"))
    // The sum over all loops.
    #expect(lines.contains("sluice_loop_latency_seconds_count 2"))
    #expect(lines.contains("sluice_loops 2"))
  }

  @Test func connectionsAreCountedByTheirDoors() {
    var snapshot = snapshot
    snapshot.doors = [.native: 3, .http: 2]
    let lines = page(snapshot).filter { $0.hasPrefix("sluice_connections") }
    #expect(
      lines == [
        "sluice_connections{door=\"native\"} 3", "sluice_connections{door=\"http\"} 2",
        "sluice_connections{door=\"websocket\"} 0", "sluice_connections{door=\"mqtt\"} 0",
      ])
  }

  @Test func openMetricsEndAndNameFamiliesWithoutTotal() {
    let lines = page(snapshot, .openMetrics)
    #expect(lines.last == "# EOF")
    #expect(lines.contains("# TYPE sluice_topic_records_received counter"))
    #expect(lines.contains("# UNIT sluice_topic_received_bytes bytes"))
    #expect(lines.contains("sluice_topic_records_received_total{topic=\"orders.eu\"} 7"))
    #expect(!page(snapshot).contains { $0.hasPrefix("# UNIT") || $0 == "# EOF" })
  }

  @Test func eachFamilyIsDescribedOnceBeforeItsSamples() {
    for format in [MetricsFormat.prometheus, .openMetrics] {
      var described: Set<Substring> = []
      for line in page(snapshot, format) where line.hasPrefix("# TYPE") {
        #expect(described.insert(line.split(separator: " ")[2]).inserted, "\(line)")
      }
      #expect(described.count > 40)
    }
  }

  @Test func manyTopicsAreSummedInOneLine() {
    var many = BrokerSnapshot()
    many.topics = (0..<100).map { number in
      TopicSnapshot("t\(number)") { topic in
        topic.traffic.sent = 2
        topic.lag = 1
      }
    }
    let lines = page(many, limit: 10)
    #expect(lines.count { $0.hasPrefix("sluice_topic_records_sent_total{") } == 11)
    #expect(lines.contains("sluice_topic_records_sent_total{topic=\"all other topics\"} 180"))
    #expect(lines.contains("sluice_topic_lag_records{topic=\"all other topics\"} 90"))
    #expect(lines.contains("sluice_topics_summed 90"))
    #expect(lines.contains("sluice_topics 100"))
    #expect(throws: (any Error).self) { try TopicName.validate(TopicMetrics.others) }
  }

  @Test func theSumOfTheOthersNeverFalls() {
    var selection = TopicSelection(limit: 1)
    func topic(_ name: String, sent: UInt64) -> TopicSnapshot {
      TopicSnapshot(name) { $0.traffic.sent = sent }
    }
    func others(_ topics: [TopicSnapshot]) -> UInt64 { selection.select(topics).others.traffic.sent }
    #expect(others([topic("b", sent: 5), topic("c", sent: 10)]) == 10)
    // A topic that sorts before the others takes no line from them.
    #expect(others([topic("a", sent: 1), topic("b", sent: 5), topic("c", sent: 11)]) == 12)
    // After a topic's deletion its counts stay. For c, which gets b's line, that line counts only from here on.
    #expect(others([topic("b", sent: 6), topic("c", sent: 12)]) == 13)
    #expect(others([topic("c", sent: 13)]) == 13)
    #expect(others([topic("c", sent: 14), topic("d", sent: 1)]) == 14)
    // Deleted, and recreated.
    #expect(others([topic("c", sent: 14), topic("d", sent: 0)]) == 14)
  }

  @Test func theSystemTellsOfTheProcess() {
    var numbers = ProcessNumbers()
    numbers.read(
      stat: "1 (a) b (c) S 1 1 1 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 3 0 1000 1 1",
      system: "cpu 1\nbtime 1700000000\n", ticksPerSecond: 100)
    #expect(numbers.cpuSeconds == 2)
    #expect(numbers.startTime == 1_700_000_010)
    let now = ProcessNumbers.now
    #expect(now.residentBytes > 1 << 20)
    #expect(now.openDescriptors >= 3)
    #expect(now.maximumDescriptors >= UInt64(now.openDescriptors))
    #expect(now.startTime > 1_600_000_000)
  }

  @Test(
    .enabled(if: Promtool.path != nil, "promtool isn't installed: scripts/bootstrap.sh --tests installs it"))
  func promtoolHasNothingToSay() throws {
    let text = page(snapshot).joined(separator: "\n") + "\n"
    let tool = try ChildProcess(
      try #require(Promtool.path), ["check", "metrics"], input: .bytes(Array(text.utf8)))
    #expect(try tool.waitForExit() == .code(0))
    #expect(tool.standardError.text == "")
    #expect(tool.standardOutput.text == "")
  }
}
