/// What is asked for.
enum Route: Hashable, Sendable {
  case dashboard
  case health
  /// - Parameter needsStorage: whether a broker whose store takes no records counts as not ready.
  case readiness(needsStorage: Bool)
  case metrics(MetricsFormat)
  case broker
  /// The topics behind a name, in the order of names.
  case topics(after: String, limit: Int)
  case topic(String)
  case records(topic: String, count: Int)
  case connections(limit: Int)
  /// With details of one topic, if it is named.
  case events(topic: String?)

  /// Whether anybody may ask.
  var isOpen: Bool {
    switch self {
    case .health, .readiness: true
    default: false
    }
  }

  /// - Throws: 400, 404 or 405, and why.
  init(_ request: AdminRequest, _ limits: AdminLimits) throws(AdminProblem) {
    let target = try RequestTarget(request.target)
    var parameters = Parameters(target.query)
    switch target.path {
    case []: self = .dashboard
    case ["healthz"]: self = .health
    case ["readyz"]: self = .readiness(needsStorage: parameters.take("storage") == "required")
    case ["metrics"]: self = .metrics(MetricsFormat(accept: request.accept))
    case ["api", "broker"]: self = .broker
    case ["api", "topics"]:
      self = .topics(
        after: parameters.take("after") ?? "",
        limit: try parameters.takeCount("limit", standard: 1_000, most: limits.topics))
    case ["api", "connections"]:
      self = .connections(
        limit: try parameters.takeCount("limit", standard: 200, most: limits.listedConnections))
    case ["api", "events"]: self = .events(topic: parameters.take("topic"))
    case let path where path.count == 3 && path.starts(with: ["api", "topics"]) && !path[2].isEmpty:
      self = .topic(path[2])
    case let path where path.count == 4 && path.starts(with: ["api", "topics"]) && path[3] == "records":
      self = .records(
        topic: path[2], count: try parameters.takeCount("count", standard: 20, most: limits.records))
    default:
      throw .notFound(
        "there is nothing here; there are /, /healthz, /readyz, /metrics, /api/broker, /api/topics, /api/connections and /api/events"
      )
    }
    guard request.method == "GET" || request.method == "HEAD" else {
      throw AdminProblem(
        405, "this can be read with GET and HEAD, nothing else", HTTPHeader("Allow", "GET, HEAD"))
    }
    guard !request.hasBody else { throw .badRequest("a request to read something has no body") }
    // What collects metrics, and caches on the way, may add parameters of their own.
    if request.target.hasPrefix("/api/") { try parameters.end() }
  }
}

/// The parameters of a request, taken out one by one.
private struct Parameters {
  private var values: [String: String]

  init(_ values: [String: String]) {
    self.values = values
  }

  mutating func take(_ name: String) -> String? { values.removeValue(forKey: name) }

  mutating func takeCount(_ name: String, standard: Int, most: Int) throws(AdminProblem) -> Int {
    let most = max(1, most)
    guard let text = take(name) else { return min(standard, most) }
    guard let count = Int(text), (1...most).contains(count) else {
      throw .badRequest("\(name): '\(text)' isn't a number from 1 to \(most)")
    }
    return count
  }

  func end() throws(AdminProblem) {
    guard let name = values.keys.min() else { return }
    throw .badRequest("there is no parameter '\(name)' here")
  }
}
