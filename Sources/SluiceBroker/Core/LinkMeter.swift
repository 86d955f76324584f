import Synchronization

/// The links of a broker to one other node of its cluster: connections on which streams of clients are passed on. Those of all loops together.
public struct LinkSnapshot: Hashable, Sendable {
  /// The other node's name.
  public var node: String
  /// Connections that are open.
  public var connections = 0
  /// Stream numbers in use on them.
  public var streams = 0
  /// Connections that were opened, those among them that were lost, and attempts that failed, since the broker's start. A connection that is closed because
  /// it isn't used isn't lost.
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

/// What is counted of the links to one other node. From any thread.
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

/// The meters by the names of nodes. A node keeps its meter for as long as the broker runs. From any thread.
final class LinkMeters: Sendable {
  private let meters = Mutex<[String: LinkMeter]>([:])

  /// The meter of a node, made on first use.
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
