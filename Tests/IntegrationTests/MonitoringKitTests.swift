import Foundation
import TestSupport
import Testing

/// The dashboard, rules and scrape configuration in `packaging/monitoring`, compared with `/metrics` of a running broker.
@Suite(.onItsOwnThread) struct MonitoringKitTests {
  private static let folder = URL(filePath: #filePath).appending(path: "../../../packaging/monitoring")
    .standardized

  private static func text(_ file: String) throws -> String {
    try String(contentsOf: folder.appending(path: file), encoding: .utf8)
  }

  /// The queries of the dashboard's panels, with values in place of the dashboard's variables.
  private static func queries() throws -> [String] {
    let object = try JSONSerialization.jsonObject(with: Data(try text("grafana-dashboard.json").utf8))
    let panels = try #require((object as? [String: Any])?["panels"] as? [[String: Any]])
    return try panels.flatMap { panel in
      let targets = try #require(panel["targets"] as? [[String: Any]], "\(panel)")
      return try targets.map { try #require($0["expr"] as? String).replacing("$instance", with: ".*") }
    }
  }

  /// The names of the time series of a broker in use.
  private static func series() throws -> Set<String> {
    let directory = try TemporaryDirectory()
    let broker = try BrokerProcess("--admin", "127.0.0.1:0", "--data", directory.path)
    try broker.run("topic", "create", "orders", "--storage", "durable")
    try broker.run("pub", "orders", "--quiet", "a", "b", "c")
    try broker.run(
      "sub", "orders", "--group", "workers", "--from", "earliest", "--ack", "auto", "--count", "1")
    let page = try RawHTTP.get(try #require(broker.adminAddress), "/metrics").text
    return Set(
      page.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
        String(line.prefix { $0 != "{" && $0 != " " })
      })
  }

  @Test func everyMetricIsThatOfARunningBroker() throws {
    let series = try Self.series()
    // SluiceAdminTests compares the metrics of clusters with the page of a node.
    let names = #/(?:sluice|process)_\w+/#
    let files = try [
      "dashboard": Self.queries().joined(separator: "\n"), "alerts": Self.text("alerts.yml"),
      "rules": Self.text("recording-rules.yml"),
    ]
    for (file, text) in files {
      // Series recorded by rules aren't the broker's.
      let plain = text.replacing(#/\w+:\w+:\w+/#, with: "")
      let named = Set(plain.matches(of: names).map { String($0.0) }).filter {
        !$0.hasPrefix("sluice_cluster_")
      }
      #expect(named.count > 3, "\(file)")
      #expect(named.subtracting(series) == [], "\(file)")
    }
  }

  @Test(
    .enabled(if: Promtool.path != nil, "promtool isn't installed: scripts/bootstrap.sh --tests installs it"))
  func promtoolTakesTheQueriesOfTheDashboard() throws {
    let directory = try TemporaryDirectory()
    let queries = try Self.queries()
    #expect(queries.count > 20)
    let rules = queries.enumerated().map { index, query in
      "  - record: dashboard:query:n\(index)\n    expr: |\n      \(query.replacing("\n", with: "\n      "))\n"
    }
    let path = directory.file("rules.yml")
    try "groups:\n- name: dashboard\n  rules:\n\(rules.joined())".write(
      toFile: path, atomically: true, encoding: .utf8)
    let tool = try ChildProcess(try #require(Promtool.path), ["check", "rules", path])
    #expect(try tool.waitForExit() == .code(0), "\(tool.messages)")
    #expect(tool.standardOutput.text.contains("\(queries.count) rules found"), "\(tool.messages)")
  }

  /// Checks the rule files that it names as well.
  @Test(
    .enabled(if: Promtool.path != nil, "promtool isn't installed: scripts/bootstrap.sh --tests installs it"))
  func promtoolTakesTheScrapeConfiguration() throws {
    let path = Self.folder.appending(path: "scrape.yml").path
    let tool = try ChildProcess(try #require(Promtool.path), ["check", "config", path])
    #expect(try tool.waitForExit() == .code(0), "\(tool.messages)")
    #expect(tool.standardOutput.text.contains("2 rule files found"), "\(tool.messages)")
    // The rules use the job's name, and the port is the default one.
    let text = try Self.text("scrape.yml")
    #expect(text.contains("job_name: sluice\n"))
    let help = try ChildProcess(BuiltProduct.path("sluiced"), ["--help"])
    #expect(try help.waitForExit() == .code(0))
    #expect(text.contains("127.0.0.1:7421") && help.standardOutput.text.contains("127.0.0.1:7421"))
  }
}
