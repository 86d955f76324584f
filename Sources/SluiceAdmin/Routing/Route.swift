import SluiceBroker
import SluiceHTTP

/// The resource of a request.
enum Route: Hashable, Sendable {
  case dashboard
  case health
  /// - Parameter needsStorage: whether a broker whose store accepts no records counts as not ready.
  case readiness(needsStorage: Bool)
  case metrics(MetricsFormat)
  case broker
  /// The topics after a name, in the order of names.
  case topics(after: String, limit: Int)
  case topic(String)
  case records(topic: String, RecordQuery)
  /// The connections that contain a text in their names, identities, addresses, numbers or topics; all for an empty one.
  case connections(filter: String, limit: Int)
  /// The durable cursors and groups, of one topic or all, that contain a text in their names or topics; all for an empty one.
  case consumers(topic: String?, filter: String, limit: Int)
  case problems
  /// The broker's settings, with their defaults.
  case settings
  /// Users, keys of tokens, and permissions, of identities that have a text in their names; all for an empty one.
  case users(filter: String, limit: Int)
  /// The cluster that the broker is a node of.
  case cluster
  /// The history of the broker, or of a topic, over the last seconds; nil for the finest step that covers them.
  case history(topic: String?, seconds: Int, step: Int?)
  /// The events, with details of one topic if it is named.
  case events(topic: String?)
  case action(AdminAction)

  /// Whether the route needs no authentication.
  var isOpen: Bool {
    switch self {
    case .health, .readiness: true
    default: false
    }
  }

  /// - Parameter actions: whether routes for changes exist.
  /// - Throws: 400, 404 or 405, with the reason.
  init(_ request: AdminRequest, _ limits: AdminLimits, actions: Bool = false) throws(AdminProblem) {
    var target = try RequestTarget(request.target)
    if actions, let action = try AdminAction(request.method, target.path) {
      try target.end()
      self = .action(action)
      return
    }
    switch target.path {
    case []: self = .dashboard
    case ["healthz"]: self = .health
    case ["readyz"]: self = .readiness(needsStorage: target.take("storage") == "required")
    case ["metrics"]: self = .metrics(MetricsFormat(accept: request.accept))
    case ["api", "broker"]: self = .broker
    case ["api", "topics"]:
      self = .topics(
        after: target.take("after") ?? "",
        limit: try target.takeCount("limit", standard: 1_000, most: limits.topics))
    case ["api", "connections"]:
      self = .connections(
        filter: target.take("filter") ?? "",
        limit: try target.takeCount("limit", standard: 200, most: limits.listedConnections))
    case ["api", "consumers"]:
      self = .consumers(
        topic: target.take("topic"), filter: target.take("filter") ?? "",
        limit: try target.takeCount("limit", standard: 200, most: limits.consumers))
    case ["api", "problems"]: self = .problems
    case ["api", "settings"]: self = .settings
    case ["api", "users"]:
      self = .users(
        filter: target.take("filter") ?? "",
        limit: try target.takeCount("limit", standard: 200, most: limits.listedUsers))
    case ["api", "cluster"]: self = .cluster
    case ["api", "history"]:
      let seconds = try target.takeCount("range", standard: 3_600, most: 30 * 86_400)
      let step = target.has("step") ? try target.takeCount("step", standard: 1, most: 86_400) : nil
      self = .history(topic: target.take("topic"), seconds: seconds, step: step)
    case ["api", "events"]: self = .events(topic: target.take("topic"))
    case let path where path.count == 3 && path.starts(with: ["api", "topics"]) && !path[2].isEmpty:
      self = .topic(path[2])
    case let path where path.count == 4 && path.starts(with: ["api", "topics"]) && path[3] == "records":
      self = .records(topic: path[2], try RecordQuery(&target, limits))
    default:
      throw .notFound(
        "there is nothing here; there are /, /healthz, /readyz, /metrics, /api/broker, /api/topics, /api/consumers, /api/connections, /api/problems, /api/settings, /api/users, /api/cluster, /api/history and /api/events"
      )
    }
    guard request.method == "GET" || request.method == "HEAD" else {
      throw AdminProblem(
        405, "this can be read with GET and HEAD, nothing else\(actions ? "" : "; --admin-actions is off")",
        HTTPHeader("Allow", "GET, HEAD"))
    }
    guard !request.hasBody else { throw .badRequest("a request to read something has no body") }
    // Collectors of metrics, and caches on the way, may add parameters.
    if request.target.hasPrefix("/api/") { try target.end() }
  }
}

/// The parsed target of a request: `/api/topics/a%2Eb?count=20`.
struct RequestTarget: Hashable {
  /// The decoded components of the path; none for `/`.
  private(set) var path: [String] = []
  private(set) var query: [String: String] = [:]

  /// - Throws: 400 for a malformed path, and for escapes that aren't UTF-8.
  init(_ text: String) throws(AdminProblem) {
    let target: HTTPTarget
    do throws(HTTPProblem) { target = try HTTPTarget(text[...]) } catch { throw AdminProblem(error) }
    path = target.path == [""] ? [] : target.path
    for parameter in target.query {
      guard query.updateValue(parameter.value, forKey: parameter.name) == nil else {
        throw .badRequest("the parameter '\(parameter.name)' is there twice")
      }
    }
  }

  /// Removes and returns a parameter.
  mutating func take(_ name: String) -> String? { query.removeValue(forKey: name) }

  func has(_ name: String) -> Bool { query[name] != nil }

  /// Removes and returns a parameter that is a number from 1 to `most`.
  mutating func takeCount(_ name: String, standard: Int, most: Int) throws(AdminProblem) -> Int {
    let most = max(1, most)
    guard let text = take(name) else { return min(standard, most) }
    guard let count = Int(text), (1...most).contains(count) else {
      throw .badRequest("\(name): '\(text)' isn't a number from 1 to \(most)")
    }
    return count
  }

  /// - Throws: 400 for a parameter that remains.
  func end() throws(AdminProblem) {
    guard let name = query.keys.min() else { return }
    throw .badRequest("there is no parameter '\(name)' here")
  }
}
