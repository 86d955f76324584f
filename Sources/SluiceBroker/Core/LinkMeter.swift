import Synchronization

/// The links of a broker to one other node of its cluster, summed over all loops. A link is a connection that relays clients' streams.
public struct LinkSnapshot: Hashable, Sendable {
  /// The other node's name.
  public var node: String
  /// Connections that are open.
  public var connections = 0
  /// Stream numbers in use on them.
  public var streams = 0
  /// Connections opened, connections lost and attempts that failed, since the broker's start. Connections closed because they were idle aren't counted
  /// as lost.
  public var opened = 0
  public var lost = 0
  public var failed = 0
  /// Bytes of frames, since the broker's start.
  public var bytesReceived = 0
  public var bytesSent = 0
  /// Records that the other node has delivered, and those that were published to it, since the broker's start.
  public var recordsReceived = 0
  public var recordsSent = 0

  public init(_ node: String) {
    self.node = node
  }
}

/// Counters of the links to one other node. From any thread.
final class LinkMeter: Sendable {
  enum Figure: Int, CaseIterable {
    case connections
    case streams
    case opened
    case lost
    case failed
    case bytesReceived
    case bytesSent
    case recordsReceived
    case recordsSent
  }

  private final class Number: Sendable {
    let value = Atomic<Int>(0)
  }

  let node: String
  private let numbers = Figure.allCases.map { _ in Number() }

  init(_ node: String) {
    self.node = node
  }

  func add(_ figure: Figure, _ count: Int = 1) {
    numbers[figure.rawValue].value.wrappingAdd(count, ordering: .relaxed)
  }

  private subscript(figure: Figure) -> Int { numbers[figure.rawValue].value.load(ordering: .relaxed) }

  var snapshot: LinkSnapshot {
    var snapshot = LinkSnapshot(node)
    snapshot.connections = self[.connections]
    snapshot.streams = self[.streams]
    snapshot.opened = self[.opened]
    snapshot.lost = self[.lost]
    snapshot.failed = self[.failed]
    snapshot.bytesReceived = self[.bytesReceived]
    snapshot.bytesSent = self[.bytesSent]
    snapshot.recordsReceived = self[.recordsReceived]
    snapshot.recordsSent = self[.recordsSent]
    return snapshot
  }
}

/// The meters by node name. The broker keeps a node's meter until it stops. From any thread.
final class LinkMeters: Sendable {
  private let meters = Mutex<[String: LinkMeter]>([:])

  /// The meter of a node, created on first use.
  func meter(of node: String) -> LinkMeter {
    meters.withLock { meters in
      if let meter = meters[node] { return meter }
      let meter = LinkMeter(node)
      meters[node] = meter
      return meter
    }
  }

  /// Sorted by name.
  var snapshots: [LinkSnapshot] {
    meters.withLock { Array($0.values) }.map(\.snapshot).sorted { $0.node < $1.node }
  }
}
