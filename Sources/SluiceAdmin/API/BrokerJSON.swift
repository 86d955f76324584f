import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceWire

/// The broker and its connections in the API.
enum BrokerJSON {
  static func object(_ snapshot: BrokerSnapshot, of broker: BrokerIdentity) -> JSON {
    var turns = Histogram()
    for loop in snapshot.loops { turns.add(loop.turns) }
    let process = ProcessNumbers.now
    return [
      "version": .text(broker.version), "node": .textOrNull(broker.node), "host": .text(broker.host),
      "addresses": .array(broker.addresses.map { .text("\($0)") }),
      "authenticatesClients": .flag(broker.authenticatesClients), "time": .number(snapshot.time),
      "uptimeSeconds": .seconds(milliseconds: snapshot.uptime), "topics": .exact(snapshot.topicCount),
      "connections": .exact(snapshot.connectionCount),
      "metrics": .object(snapshot.metrics.map { ($0.metric.name, .exact($0.value)) }),
      "loops": .array(snapshot.loops.map { ["connections": .exact($0.connections)] }),
      "deliveryLatency": histogram(snapshot.latency), "loopLatency": histogram(turns),
      "process": [
        "cpuSeconds": .number(process.cpuSeconds, decimals: 2),
        "residentBytes": .exact(process.residentBytes),
        "openDescriptors": .exact(process.openDescriptors),
      ],
      "storage": snapshot.storage.map(storage) ?? .null,
    ]
  }

  private static func storage(_ storage: StoreSnapshot) -> JSON {
    [
      "state": .text(StorageText.state(storage.state)),
      "sinceSeconds": .seconds(milliseconds: storage.since), "message": .text(storage.message),
      "limitBytes": .limit(storage.limit), "usedBytes": .exact(storage.usedBytes),
      "fileBytes": .exact(storage.fileBytes), "availableBytes": .limit(storage.availableBytes),
      "fullness": .number(storage.fullness ?? 0, decimals: 4),
      "backlogBytes": .exact(storage.backlog), "waitingPublishers": .exact(storage.waiting),
    ]
  }

  /// The counts of durations in buckets. `bounds` are the upper bounds in nanoseconds; the last bucket has no bound.
  private static func histogram(_ histogram: Histogram) -> JSON {
    let bounds = histogram.counts.indices.dropLast().map { JSON.exact(Histogram.bound(of: $0)) }
    return [
      "bounds": .array(bounds), "counts": .array(histogram.counts.map { .exact($0) }),
      "sum": .exact(histogram.sum),
    ]
  }

  static func connection(_ connection: ConnectionSnapshot) -> JSON {
    [
      "id": .exact(connection.id), "client": .text(connection.client),
      "identity": .text(connection.identity), "peer": .text(connection.peer),
      "security": .text(connection.security), "ageSeconds": .seconds(milliseconds: connection.age),
      "subscriptions": .exact(connection.subscriptions), "publications": .exact(connection.publications),
      "buffered": .exact(connection.buffered), "bytesReceived": .exact(connection.received),
      "bytesSent": .exact(connection.sent), "topics": .array(connection.topics.map { .text($0) }),
    ]
  }
}

/// The names and addresses that distinguish the broker from others.
struct BrokerIdentity {
  var version: String
  /// Its name in its cluster; nil for a broker of one node.
  var node: String?
  /// The machine's name.
  var host = ""
  /// Where clients connect; empty before it listens.
  var addresses: [SocketAddress] = []
  var authenticatesClients = false

  init(version: String) {
    self.version = version
  }

  init(of source: any AdminSource, version: String) {
    self.version = version
    node = source.cluster?.info.name
    host = ProcessNumbers.host
    addresses = source.addresses
    authenticatesClients = source.authenticatesClients
  }
}

/// The notation of numbers and times in the API's JSON.
///
/// - A number above 2⁵³, which JavaScript would round, is a string.
/// - No limit is null.
/// - Durations are seconds, with milliseconds after the point. Points in time are milliseconds since 1970.
extension JSON {
  static func exact(_ value: some BinaryInteger) -> JSON {
    value <= UInt64(1) << 53 ? .number(value) : .text(String(value))
  }

  /// Null for nil, and for the largest value.
  static func limit(_ value: UInt64?) -> JSON {
    value.flatMap { $0 == .max ? nil : .exact($0) } ?? .null
  }

  static func seconds(milliseconds: UInt64) -> JSON {
    let rest = String(milliseconds % 1000)
    return .notation("\(milliseconds / 1000).\(String(repeating: "0", count: 3 - rest.count))\(rest)")
  }
}
