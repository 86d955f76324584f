/// The results of several rounds of several workloads against several servers.
struct Summary: Codable {
  var machine = Machine()
  var workloads: [WorkloadSummary]

  /// Workloads and servers keep the order in which they first appear.
  init(_ reports: [LoadReport]) {
    workloads = Self.ordered(reports, by: \.name).map { WorkloadSummary(name: $0, reports: $1) }
  }

  static func ordered<Key: Hashable>(
    _ reports: [LoadReport], by key: (LoadReport) -> Key
  ) -> [(Key, [LoadReport])] {
    var order: [Key] = []
    var groups: [Key: [LoadReport]] = [:]
    for report in reports {
      if groups[key(report)] == nil { order.append(key(report)) }
      groups[key(report), default: []].append(report)
    }
    return order.map { ($0, groups[$0]!) }
  }

  func rendered() -> String {
    ([machine.description] + workloads.map { $0.rendered() }).joined(separator: "\n\n")
  }
}

/// One workload: a median for each server, and comparisons with Sluice.
struct WorkloadSummary: Codable {
  var name: String
  var results: [ServerResult]
  /// For each figure, the server with which Sluice is compared, and the ratio of Sluice to that one. A rate above 1 is better; CPU, latency and memory are
  /// better below 1.
  var comparisons: [Comparison]

  init(name: String, reports: [LoadReport]) {
    self.name = name
    results = Summary.ordered(reports, by: \.driver).map { ServerResult(driver: $0, reports: $1) }
    comparisons = Figure.allCases.flatMap { [results] in Comparison.all($0, results) }
  }

  func rendered() -> String {
    let figures = Figure.allCases.filter { figure in results.contains { figure.value($0) != nil } }
    let hasRates = results.contains { $0.deliveredPerSecond != nil }
    var table = TextTable(
      header: [name] + figures.map(\.title) + ["runs"] + (hasRates ? ["load CPUs", "spread"] : []))
    for result in results {
      table.add(
        [result.driver]
          + figures.map { figure in figure.value(result).map(figure.text) ?? "–" }
          + ["\(result.runs)"]
          + (hasRates
            ? [Format.digits(result.loadCPUs), result.spread.map { "\(Int($0 * 100)) %" } ?? "–"] : []))
    }
    let ratios = comparisons.map { "  \($0.figure): Sluice is \(Format.digits($0.ratio)) × \($0.reference)" }
    let faults = results.flatMap { result in result.faults.map { "  \(result.driver): \($0)" } }
    return ([table.rendered()] + ratios + faults).joined(separator: "\n")
  }
}

/// Medians over the runs of one server in one workload.
struct ServerResult: Codable {
  var driver: String
  var runs: Int
  var deliveredPerSecond: Double?
  var bytesPerSecond: Double?
  /// The difference between the fastest and the slowest run, as a share of the median rate.
  var spread: Double?
  var serverMicrosecondsPerRecord: Double?
  var serverCPUs: Double?
  var loadCPUs: Double
  var p50: Double?
  var p99: Double?
  var p999: Double?
  var bytesPerConnection: Double?
  /// The failures of the runs.
  var faults: [String]
  /// The measured runs, for further evaluation.
  var reports: [LoadReport]

  init(driver: String, reports: [LoadReport]) {
    func median(_ value: (LoadReport) -> Double?) -> Double? {
      Statistics.median(reports.compactMap(value))
    }
    self.driver = driver
    self.reports = reports
    runs = reports.count
    deliveredPerSecond = median { $0.delivered > 0 ? $0.deliveredPerSecond : nil }
    bytesPerSecond = median { $0.delivered > 0 ? $0.bytesPerSecond : nil }
    let rates = reports.filter { $0.delivered > 0 }.map(\.deliveredPerSecond)
    if rates.count > 1, let least = rates.min(), let most = rates.max(), let middle = deliveredPerSecond,
      middle > 0
    {
      spread = (most - least) / middle
    }
    serverMicrosecondsPerRecord = median(\.serverMicrosecondsPerRecord)
    serverCPUs = median(\.serverCPUs)
    loadCPUs = median(\.loadCPUs) ?? 0
    p50 = median { $0.latency?.p50 }
    p99 = median { $0.latency?.p99 }
    p999 = median { $0.latency?.p999 }
    bytesPerConnection = median(\.bytesPerConnection)
    faults = reports.compactMap(\.fault)
  }
}
