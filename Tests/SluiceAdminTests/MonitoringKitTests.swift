import Foundation
import SluiceBroker
import SluiceTopics
import SluiceWire
import TestSupport
import Testing

@testable import SluiceAdmin

/// The rules, alerts and dashboard in `packaging/monitoring` use only metrics that the broker provides.
@Suite("Monitoring kit") struct MonitoringKitTests {
  private static let root = URL(filePath: #filePath).appending(path: "../../..").standardized
  private static let folder = root.appending(path: "packaging/monitoring")
  private static let files = ["recording-rules.yml", "alerts.yml", "grafana-dashboard.json"]

  private func text(_ file: String) throws -> String {
    try String(contentsOf: Self.folder.appending(path: file), encoding: .utf8)
  }

  /// Every metric that a page can contain.
  private func metrics() -> Set<String> {
    var snapshot = BrokerSnapshot()
    snapshot.storage = StoreSnapshot()
    snapshot.storage?.availableBytes = 1
    snapshot.topics = [
      TopicSnapshot("t") { topic in
        topic.consumers.groups = 1
        topic.consumers.furthest = [
          TopicInfo.Consumer(
            name: "g", kind: .group, nextOffset: 5, lag: 1, bytes: 1, age: 1, members: 2, unacknowledged: 3,
            redeliveries: 4, deadLetters: 6, abandoned: 7, missed: 8)
        ]
      }
    ]
    snapshot.metrics = BrokerMetric.allCases.map { ($0, 5) }
    snapshot.latency.add(1_500)
    var turns = Histogram()
    turns.add(500)
    snapshot.loops = [LoopSnapshot(connections: 1, turns: turns)]
    var selection = TopicSelection(limit: 10)
    var consumers = ConsumerSelection(groups: 2, cursors: 1)
    var cluster = ClusterSnapshot(
      ClusterInfo(
        name: "n1", unreadiness: "", engine: ClusterInfo.Engine(isConnected: true, commitLatency: 1),
        nodes: [],
        shardCount: 0, shards: []), isLeaseValid: true)
    (cluster.engineCopies, cluster.currentEngineCopies) = (3, 2)
    let page = MetricsPage.text(
      snapshot, &selection, &consumers, ProgramNumbers(droppedLogLines: 3, refusedWatchers: 4),
      ProcessNumbers(), version: "1", .prometheus, cluster: cluster)
    return Set(page.matches(of: #/# TYPE (\w+)/#).map { String($0.1) })
  }

  @Test("Every metric that is named exists, and every recorded one is recorded", arguments: files)
  func metricsExist(_ file: String) throws {
    let text = try text(file)
    let known = metrics()
    let recorded = Set(
      try self.text("recording-rules.yml").matches(of: #/record: (\S+)/#).map { String($0.1) })
    let names = text.matches(of: #/(?:\w+:)?(?:sluice|process)_\w+(?::\w+)?/#).map { String($0.0) }
    #expect(names.count > 5)
    for name in names {
      let isKnown =
        name.contains(":")
        ? recorded.contains(name)
        : known.contains(name) || name.hasSuffix("_bucket") && known.contains(String(name.dropLast(7)))
      #expect(isKnown, "\(file) names \(name)")
    }
  }

  @Test("Every alert has a section in the runbook, and every section an alert")
  func runbook() throws {
    let alerts = try text("alerts.yml").matches(of: #/- alert: (\w+)/#).map { String($0.1) }
    let page = try String(
      contentsOf: Self.root.appending(path: "Sources/Documentation/Sluice.docc/Runbook.md"), encoding: .utf8)
    let sections = page.matches(of: #/\n## (\w+)\n/#).map { String($0.1) }.filter { $0 != "Overview" }
    #expect(alerts == sections)
    for alert in alerts { #expect(try text("alerts.yml").contains("runbook, section \(alert)\n")) }
  }

  @Test("The dashboard is JSON, and its panels don't overlap")
  func dashboard() throws {
    let object = try JSONSerialization.jsonObject(with: Data(try text("grafana-dashboard.json").utf8))
    let panels = try #require((object as? [String: Any])?["panels"] as? [[String: Any]])
    var taken: Set<[Int]> = []
    for panel in panels {
      let place = try #require(panel["gridPos"] as? [String: Int])
      for x in place["x", default: 0]..<(place["x", default: 0] + place["w", default: 0]) {
        for y in place["y", default: 0]..<(place["y", default: 0] + place["h", default: 0]) {
          #expect(x < 24 && taken.insert([x, y]).inserted, "\(panel["title"] ?? "") at \(x), \(y)")
        }
      }
    }
  }

  @Test("The OpenAPI file has each resource of the listener, and no others")
  func openAPI() throws {
    let spec = try String(
      contentsOf: Self.root.appending(path: "packaging/openapi.yaml"), encoding: .utf8)
    let paths = spec.matches(of: #/\n  (\/\S+):/#).map { String($0.1) }
    // The page itself isn't for programs.
    let routes: [(String, Route)] = [
      ("/healthz", .health), ("/readyz", .readiness(needsStorage: false)),
      ("/metrics", .metrics(.prometheus)),
      ("/api/broker", .broker), ("/api/topics", .topics(after: "", limit: 1_000)),
      ("/api/topics/{name}", .topic("{name}")),
      ("/api/topics/{name}/trim", .action(.trim(topic: "{name}"))),
      ("/api/topics/{name}/records", .records(topic: "{name}", RecordQuery())),
      ("/api/topics/{name}/consumers/{consumer}", .action(.forget(consumer: "{consumer}", topic: "{name}"))),
      (
        "/api/topics/{name}/consumers/{consumer}/move",
        .action(.move(consumer: "{consumer}", topic: "{name}"))
      ),
      ("/api/connections", .connections(filter: "", limit: 200)),
      ("/api/connections/{id}", .action(.disconnect(7))),
      ("/api/consumers", .consumers(topic: nil, filter: "", limit: 200)),
      ("/api/problems", .problems), ("/api/cluster", .cluster),
      ("/api/history", .history(topic: nil, seconds: 3_600, step: nil)),
      ("/api/events", .events(topic: nil)),
    ]
    #expect(paths == routes.map(\.0))
    for (path, route) in routes {
      var request = AdminRequest()
      let isPost = path.hasSuffix("/trim") || path.hasSuffix("/move")
      let isDelete = path.hasSuffix("{id}") || path.hasSuffix("{consumer}")
      request.method = isPost ? "POST" : isDelete ? "DELETE" : "GET"
      request.target = path.replacing("{id}", with: "7").replacing("{", with: "%7B").replacing(
        "}", with: "%7D")
      #expect(try Route(request, AdminLimits(), actions: true) == route)
    }
  }

  @Test(
    "promtool takes the rules",
    .enabled(if: Promtool.path != nil, "promtool isn't installed: scripts/bootstrap.sh --tests installs it"),
    arguments: ["recording-rules.yml", "alerts.yml"])
  func promtool(_ file: String) throws {
    let tool = try ChildProcess(
      try #require(Promtool.path), ["check", "rules", Self.folder.appending(path: file).path])
    #expect(try tool.waitForExit() == .code(0), "\(tool.standardError.text)")
  }
}
