import Synchronization

/// A broker's counters and gauges. From any thread; each number is exact, and those of one snapshot are of about the same moment.
public final class BrokerMetrics: Sendable {
  private final class Number: Sendable {
    let value = Atomic<Int>(0)
  }

  /// In the order of the metrics.
  private let numbers = BrokerMetric.allCases.map { _ in Number() }

  package init() {}

  public subscript(metric: BrokerMetric) -> Int { numbers[metric.rawValue].value.load(ordering: .relaxed) }

  package func add(_ metric: BrokerMetric, _ count: Int = 1) {
    numbers[metric.rawValue].value.wrappingAdd(count, ordering: .relaxed)
  }

  package func set(_ metric: BrokerMetric, to value: Int) {
    numbers[metric.rawValue].value.store(value, ordering: .relaxed)
  }
}

/// The traffic of a loop's connections since it was last added to the broker's metrics. Kept per loop because all loops share the metrics.
package struct LoopTraffic {
  package var recordsReceived = 0
  package var recordsSent = 0
  package var bytesReceived = 0
  package var bytesSent = 0

  /// Adds the numbers to the metrics, and resets them.
  package mutating func settle(with metrics: BrokerMetrics) {
    guard bytesReceived != 0 || bytesSent != 0 else { return }
    metrics.add(.bytesReceived, bytesReceived)
    metrics.add(.bytesSent, bytesSent)
    if recordsReceived != 0 { metrics.add(.recordsReceived, recordsReceived) }
    if recordsSent != 0 { metrics.add(.recordsSent, recordsSent) }
    self = LoopTraffic()
  }
}

/// A counter or gauge of a broker. Names with `refused…` count requests and connections that a limit has refused.
public enum BrokerMetric: Int, CaseIterable, Sendable {
  /// Records published, and records sent to subscribers; bytes of frames read and written.
  case recordsReceived
  case recordsSent
  case bytesReceived
  case bytesSent
  case topics

  /// Present connections, and all connections ever accepted.
  case connections
  case connectionsAccepted
  /// Connections refused because there were too many: in all, from their address, or of their identity.
  case refusedConnections
  case refusedConnectionsPerAddress
  case refusedConnectionsPerIdentity
  /// Connections reset at once because too many others were still closing.
  case refusedDescriptors

  /// Connections ended by a deadline.
  case handshakeTimeouts
  case keepaliveTimeouts
  case idleTimeouts
  case writeTimeouts

  /// Attempts to authenticate or renew credentials that failed, and attempts that were refused because too many waited.
  case failedAuthentications
  case refusedAuthentications
  /// Attempts delayed because others from the same address had failed.
  case slowedAuthentications
  /// Connections closed because their credentials expired, and because their identity may no longer connect.
  case expiredCredentials
  case revokedConnections
  /// Streams refused or ended because the client lacks the permission.
  case deniedPermissions
  /// Messages and wills of MQTT clients that weren't published because the broker can't name their topics.
  case unnamedMessages

  /// Present subscriptions and publications of all connections.
  case subscriptions
  case publications
  case refusedTopics
  case refusedTopicsPerConnection
  case refusedSubscriptions
  case refusedSubscriptionsPerConnection
  case refusedPublications
  case refusedPublicationsPerConnection
  case refusedPatterns
  case refusedMatches

  /// How often clients have changed settings of topics, and trimmed topics; and the records that late subscribers no longer get because of that.
  case settingChanges
  case trims
  case recordsTrimmed
  /// Connections that operators have closed.
  case closedByOperators

  /// Bytes buffered in connections, in both directions, including gateways and links to other nodes.
  case bufferedBytes
  /// Connections closed because all connections together buffered too much.
  case closedForBuffering
  /// Streams refused because they sent too much: positions of patterns, or the message of a failure.
  case refusedOversizes

  /// Bytes of records, of connections' buffers and of other objects of clients; and the ceiling above which producers wait, 0 for none.
  case memoryUsed
  case memoryCeiling
  /// Bytes of topics, groups, cursors, remembered producers, subscriptions and publications; and how often a new one was refused because of their limit.
  case keptBytes
  case refusedKept
  /// How often the ceiling was reached.
  case memoryCeilingReached
  /// Grants refused because of the ceiling.
  case memoryHolds
  /// How often reading from a connection was paused because memory exceeded the ceiling even so.
  case memoryPauses

  /// How often a publication, and how often a connection's subscriptions, waited for their identity's rate.
  case publishRateHolds
  case deliveryRateHolds

  /// Commits of durable topics, failed commits, and bytes of records written.
  case commits
  case failedCommits
  /// Changes of topics that the store rejected because of their contents.
  case rejectedChanges
  case bytesStored
  /// Bytes of records that wait to be written to disk.
  case storageBacklog

  /// The kind of a metric.
  public enum Kind: Sendable {
    /// Only ever grows.
    case counter
    /// Increases and decreases.
    case gauge
  }

  public var kind: Kind {
    switch self {
    case .topics, .connections, .subscriptions, .publications, .bufferedBytes, .memoryUsed, .memoryCeiling,
      .keptBytes, .storageBacklog:
      .gauge
    default: .counter
    }
  }

  /// The name outside the program: `refused_connections`.
  public var name: String {
    "\(self)".reduce(into: "") { name, letter in
      name += letter.isUppercase ? "_" + letter.lowercased() : String(letter)
    }
  }
}
