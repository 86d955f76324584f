import SluiceLog
import SluiceWire
import Synchronization

@testable import SluiceBroker
@testable import SluiceTopics

/// Checks that the broker's memory is bounded, and released when it is no longer needed.
final class BrokerInspector {
  private struct Weak {
    weak var connection: Connection?
  }

  private var broker: Broker { oracle.broker }
  private unowned let oracle: Oracle
  private var seen: [Weak] = []
  private var lastSeen: UInt64 = 0
  private var traffic = TrafficAudit()

  /// More bytes than the longest single reply and all unsolicited frames of one turn.
  private static let slack = 160 << 10

  init(_ oracle: Oracle) {
    self.oracle = oracle
  }

  /// Call it after a restart, which numbers connections from 1 again.
  func restarted() {
    lastSeen = 0
  }

  var connections: [Connection] { broker.contexts.flatMap(\.connections) }

  /// The numbers of subscriptions and publications that the broker has for a client.
  func attachments(of client: String) -> (subscriptions: Int, publications: Int) {
    let loopStates = broker.core.registry.all.flatMap(\.loopStates)
    return (
      loopStates.flatMap(\.subscriptions).count { $0.shown(open: nil)?.client == client },
      loopStates.flatMap(\.publications).count { $0.info.client == client }
    )
  }

  func hasConnection(named name: String) -> Bool {
    connections.contains { $0.client.name == name }
  }

  /// Records new connections.
  func look() {
    for connection in connections where connection.id > lastSeen { seen.append(Weak(connection: connection)) }
    lastSeen = max(lastSeen, connections.map(\.id).max() ?? 0)
  }

  /// Checks the bounds that hold at any time.
  func checkBounds() {
    let limits = broker.core.configuration.limits
    for connection in connections {
      let (answers, pending) = connection.waitingBytes
      oracle.check(
        answers <= limits.answers + Self.slack, 0,
        "\(answers) bytes of answers wait for \(connection.client.name)")
      oracle.check(
        pending <= max(limits.writeBatch, limits.answers) + limits.record + Self.slack, 0,
        "\(pending) bytes wait for \(connection.client.name)")
    }
    let counted = broker.core.metrics[.connections]
    oracle.check(
      counted == connections.count, 0, "\(connections.count) connections are counted as \(counted)")
    for topic in broker.core.registry.all { check(topic) }
  }

  private func check(_ topic: Topic) {
    let loopStates = topic.loopStates
    let subscriptions = loopStates.reduce(0) { $0 + $1.subscriptions.count }
    let publications = loopStates.reduce(0) { $0 + $1.publications.count }
    let attached = topic.attached
    if let wrong = traffic.check(topic, longestRecord: oracle.broker.core.configuration.limits.record) {
      oracle.fail(0, "\(topic.name) \(wrong)")
    }
    if let wrong = topic.grantViolation { oracle.fail(0, "\(topic.name) \(wrong)") }
    oracle.check(
      attached == (subscriptions, publications), 0,
      "\(topic.name) counts its \(subscriptions) subscriptions and \(publications) publications as \(attached)"
    )
    for loopState in loopStates {
      let connections = broker.contexts.first { $0.topics === loopState.loop }?.connections ?? []
      oracle.check(
        !loopState.subscriptions.isEmpty || !loopState.publications.isEmpty, 0,
        "\(topic.name) keeps a loopState without streams")
      for (index, subscription) in loopState.subscriptions.enumerated() {
        oracle.check(
          subscription.index == index
            && (subscription as? SubscriptionStream)?.loopState ?? loopState === loopState, 0,
          "\(topic.name) misplaced a subscription")
        oracle.check(
          connections.contains { $0.id == subscription.shown(open: nil)?.connection }, 0,
          "\(topic.name) has a subscription of a connection that is gone")
      }
      for (index, publication) in loopState.publications.enumerated() {
        oracle.check(
          publication.index == index && (publication as? PublicationStream)?.loopState === loopState, 0,
          "\(topic.name) misplaced a publication")
      }
    }
  }

  /// Checks that the broker is empty after all participants have left.
  func checkEmpty() {
    look()
    oracle.check(
      connections.isEmpty, 0,
      "all clients have left, but there are still \(connections.map { "\($0.client.name) (\($0.id))" })")
    checkBounds()
    for connection in seen.compactMap(\.connection) {
      oracle.fail(0, "something keeps the connection of \(connection.client.name) in memory")
    }
    let registry = broker.core.registry
    for topic in registry.all {
      oracle.check(topic.loopStates.isEmpty, 0, "\(topic.name) has loopStates though all clients have left")
    }
    let kept = registry.all.reduce(0) { $0 + $1.epoch.log.statistics().memoryBytes }
    oracle.check(
      registry.pool.bytesInUse == kept, 0,
      "\(registry.pool.bytesInUse) bytes of segments are in use where the logs have \(kept)")
  }

  /// Deletes the remaining topics, and checks that their memory is released.
  func checkMemoryReturns() {
    let registry = broker.core.registry
    for name in registry.all.map(\.name).sorted() { _ = try? registry.delete(name) }
    oracle.check(
      registry.pool.bytesInUse == 0, 0,
      "\(registry.pool.bytesInUse) bytes of segments are in use without a topic")
  }
}
