/// A figure by which servers are compared.
enum Figure: String, Codable, CaseIterable {
  case rate
  case bandwidth
  case cpu
  case p50
  case p99
  case p999
  case memory

  private var description: (title: String, value: KeyPath<ServerResult, Double?>, text: (Double) -> String) {
    switch self {
    case .rate: ("records/s", \.deliveredPerSecond, Format.count)
    case .bandwidth: ("bytes/s", \.bytesPerSecond, Format.bytes)
    case .cpu: ("server µs/record", \.serverMicrosecondsPerRecord, Format.digits)
    case .p50: ("p50 µs", \.p50, Format.digits)
    case .p99: ("p99 µs", \.p99, Format.digits)
    case .p999: ("p99.9 µs", \.p999, Format.digits)
    case .memory: ("per connection", \.bytesPerConnection, Format.bytes)
    }
  }

  var title: String { description.title }

  func value(_ result: ServerResult) -> Double? { result[keyPath: description.value] }

  func text(_ value: Double) -> String { description.text(value) }

  /// Returns whether a ratio of this figure adds information to the others, in a workload with these results.
  func isCompared(_ results: [ServerResult]) -> Bool {
    switch self {
    case .bandwidth: false
    // With a given rate, it is the same for all servers.
    case .rate: !results.contains { $0.p50 != nil }
    default: true
    }
  }

  var isBetterWhenSmaller: Bool {
    self != .rate && self != .bandwidth
  }
}

/// Sluice compared with the best peer, or with the copying limit.
struct Comparison: Codable {
  var figure: Figure
  var reference: String
  var ratio: Double

  static func all(_ figure: Figure, _ results: [ServerResult]) -> [Comparison] {
    guard figure.isCompared(results), let sluice = results.first(where: { $0.driver == "sluice" }),
      let own = figure.value(sluice)
    else { return [] }
    let peers = results.filter { $0.driver != "sluice" && $0.driver != "copy" }
    let values = peers.compactMap { peer in figure.value(peer).map { (peer.driver, $0) } }
    let best = values.min { figure.isBetterWhenSmaller ? $0.1 < $1.1 : $0.1 > $1.1 }
    let copy = results.first { $0.driver == "copy" }.flatMap(figure.value)
    return [best, copy.map { ("copy", $0) }].compactMap { reference in
      guard let (name, value) = reference, value > 0 else { return nil }
      return Comparison(figure: figure, reference: name, ratio: own / value)
    }
  }
}
