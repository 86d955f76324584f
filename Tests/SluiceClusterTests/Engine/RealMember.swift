import SluiceIO
import SluiceNATS
import Synchronization
import TestSupport

@testable import SluiceCluster

/// A node on its own loop with real sockets, and a broker that opens and closes shards immediately.
final class RealMember: Sendable {
  let name: String
  let node: ClusterNode
  private let loop: EpollLoop
  private let seen = Mutex<[ClusterEvent]>([])

  init(_ name: String, engine: [NATSAddress], password: String) throws {
    var options = ClusterOptions(name: name, advertisedAddress: "\(name).example:7420", engine: engine)
    options.nats.credentials = .fixed(.password(user: "sluice", password: password))
    self.name = name
    loop = try EpollLoop.start(name: name)
    node = try ClusterNode(options, network: SocketNetwork(), on: loop)
    loop.execute { [self] in node.start { [unowned self] in happened($0) } }
  }

  deinit { stop() }

  /// Stops it without notice to the others, as if it had been killed.
  func stop() {
    let node = node
    loop.execute { node.close() }
    loop.stop()
    loop.join()
  }

  private func happened(_ event: ClusterEvent) {
    seen.withLock { $0.append(event) }
    switch event {
    case .gained(let shard, let term): node.opened(shard, term: term)
    case .closing(let shard, let term, _): node.closed(shard, term: term)
    default: break
    }
  }

  var events: [ClusterEvent] { seen.withLock { $0 } }

  var takeOvers: [TakeOver] {
    events.compactMap { if case .takenOver(let takeOver) = $0 { takeOver } else { nil } }
  }

  /// The node's status, read on its loop.
  var status: ClusterStatus? {
    let box = Box()
    let node = node
    loop.execute {
      let status = node.status
      box.status.withLock { $0 = status }
    }
    try? eventually("a status", every: 0.001) { box.status.withLock { $0 } != nil }
    return box.status.withLock { $0 }
  }

  /// The node's status in one line.
  var summary: String {
    guard let status else { return "\(name) doesn't answer" }
    let moving = status.shards.filter { $0.state != .held || $0.owner != $0.target }
    let nodes = status.nodes.map { "\($0.name) \($0.state) \($0.shards)" }.joined(separator: ", ")
    return """
      \(name): \(status.unreadiness ?? "ready"), nodes \(nodes), \(moving.count) of \(status.shards.count) shards unsettled: \
      \(moving.prefix(3)), last events \(events.suffix(3))
      """
  }

  func perform(_ body: @escaping @Sendable (ClusterNode) -> Void) {
    let node = node
    loop.execute { body(node) }
  }

  private final class Box: Sendable {
    let status = Mutex<ClusterStatus?>(nil)
  }
}
