import SluiceBroker
import SluiceCommand
import SluiceWire

/// The broker and its connections in the API.
enum BrokerJSON {
  static func object(_ snapshot: BrokerSnapshot, version: String) -> JSONObject {
    var object = JSONObject()
    object.add("version", version)
    object.add("time", json: String(snapshot.time))
    object.add(seconds: "uptimeSeconds", milliseconds: snapshot.uptime)
    object.add(number: "topics", snapshot.topicCount)
    object.add(number: "connections", snapshot.connectionCount)
    var metrics = JSONObject()
    for (metric, value) in snapshot.metrics { metrics.add(number: metric.name, value) }
    object.add("metrics", metrics)
    object.add(
      "loops",
      snapshot.loops.map { loop in
        var object = JSONObject()
        object.add(number: "connections", loop.connections)
        return object
      })
    var turns = Histogram()
    for loop in snapshot.loops { turns.add(loop.turns) }
    object.add("deliveryLatency", histogram(snapshot.latency))
    object.add("loopLatency", histogram(turns))
    let process = ProcessNumbers.now
    var own = JSONObject()
    own.add("cpuSeconds", process.cpuSeconds, decimals: 2)
    own.add(number: "residentBytes", process.residentBytes)
    own.add(number: "openDescriptors", UInt64(process.openDescriptors))
    object.add("process", own)
    object.add("storage", json: snapshot.storage.map { storage($0).text } ?? "null")
    return object
  }

  /// The store; null without one.
  static func storage(_ storage: StoreSnapshot) -> JSONObject {
    var object = JSONObject()
    object.add("state", StorageText.state(storage.state))
    object.add(seconds: "sinceSeconds", milliseconds: storage.since)
    object.add("message", storage.message)
    object.add(limit: "limitBytes", storage.limit)
    object.add(number: "usedBytes", storage.usedBytes)
    object.add(number: "fileBytes", storage.fileBytes)
    object.add(limit: "availableBytes", storage.availableBytes)
    object.add("fullness", storage.status.fullness ?? 0, decimals: 4)
    object.add(number: "backlogBytes", storage.backlog)
    object.add(number: "waitingPublishers", storage.waiting)
    return object
  }

  /// The counts of durations in buckets. `bounds` are their upper bounds in nanoseconds; the last bucket has none.
  static func histogram(_ histogram: Histogram) -> JSONObject {
    var object = JSONObject()
    let bounds = histogram.counts.indices.dropLast().map { AdminJSON.number(Histogram.bound(of: $0)) }
    object.add("bounds", json: AdminJSON.array(bounds))
    object.add("counts", json: AdminJSON.array(histogram.counts.map { AdminJSON.number($0) }))
    object.add(number: "sum", histogram.sum)
    return object
  }

  static func connection(_ connection: ConnectionSnapshot) -> JSONObject {
    var object = JSONObject()
    object.add(number: "id", connection.id)
    object.add("client", connection.client)
    object.add("identity", connection.identity)
    object.add("peer", connection.peer)
    object.add("security", connection.security)
    object.add(seconds: "ageSeconds", milliseconds: connection.age)
    object.add(number: "subscriptions", connection.subscriptions)
    object.add(number: "publications", connection.publications)
    object.add(number: "buffered", connection.buffered)
    return object
  }
}

/// The notation of numbers and times in the API's JSON.
///
/// - A number above 2⁵³, which JavaScript would round, is a string.
/// - No limit, and any number, is null.
/// - Durations are seconds, with milliseconds behind the point. Points in time are milliseconds since 1970.
enum AdminJSON {
  private static let exact: UInt64 = 1 << 53

  static func number(_ value: UInt64) -> String {
    value <= exact ? String(value) : "\"\(value)\""
  }

  /// - Parameter value: all ones for no limit.
  static func limit(_ value: UInt64) -> String {
    value == .max ? "null" : number(value)
  }

  static func seconds(milliseconds: UInt64) -> String {
    let rest = String(milliseconds % 1000)
    return "\(milliseconds / 1000).\(String(repeating: "0", count: 3 - rest.count))\(rest)"
  }

  static func array(_ elements: some Sequence<String>) -> String {
    "[\(elements.joined(separator: ","))]"
  }
}

extension JSONObject {
  mutating func add(number name: String, _ value: UInt64) { add(name, json: AdminJSON.number(value)) }

  mutating func add(number name: String, _ value: Int) {
    add(name, json: value < 0 ? String(value) : AdminJSON.number(UInt64(value)))
  }

  /// Null for nil, and for all ones.
  mutating func add(limit name: String, _ value: UInt64?) {
    add(name, json: AdminJSON.limit(value ?? .max))
  }

  mutating func add(seconds name: String, milliseconds: UInt64) {
    add(name, json: AdminJSON.seconds(milliseconds: milliseconds))
  }
}
