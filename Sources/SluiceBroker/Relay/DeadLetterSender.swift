import SluiceAccess
import SluiceIO
import SluiceTopics
import SluiceWire

/// Sends dead letters to their topics, at this node or another one, for the groups of one loop. Belongs to that loop.
///
/// ```
///  Group ── DeadLetterSender ── local: Topic, as a producer that attaches and leaves
///                           └── remote: DeadLetterStream ── NodeLink ── owner
/// ```
// @unchecked: belongs to `topics.loop`.
final class DeadLetterSender: DeadLetterRoute, @unchecked Sendable {
  /// The identity in requests to other nodes if clients authenticate. It carries the right to publish to one topic; the group's members have proved that
  /// they have this right.
  private static let identity = "dead-letters"

  private unowned let relay: NodeRelay
  private unowned let topics: TopicLoop
  private let core: BrokerCore
  /// By producer ID.
  private var streams: [UInt64: DeadLetterStream] = [:]

  init(_ relay: NodeRelay, _ topics: TopicLoop, _ core: BrokerCore) {
    self.relay = relay
    self.topics = topics
    self.core = core
  }

  func open(
    _ name: String, producer: UInt64, from first: UInt64, durably: Bool,
    _ answer: @escaping @Sendable (Result<UInt64, WireError>) -> Void
  ) {
    close(producer: producer)
    do throws(WireError) {
      // Checked before the topic is created: rules may make it compact, and a compact topic can't keep dead letters.
      try core.registry.checkTakesDeadLetters(name)
      switch relay.route(of: name) {
      case .local: try openHere(name, producer, first, answer)
      case .remote(let node): try open(name, at: node, producer, first, durably, answer)
      case .moving: throw TopicRegistry.moved(name)
      }
    } catch {
      topics.loop.execute { answer(.failure(error)) }
    }
  }

  func send(
    _ deadLetter: BatchBuilder, to name: String, producer: UInt64, sequence: UInt64, durably: Bool,
    _ answer: @escaping @Sendable (WireError?) -> Void
  ) {
    let loop = topics.loop
    do throws(WireError) {
      switch relay.route(of: name) {
      case .local: try sendHere(deadLetter, name, producer, sequence, durably, answer)
      case .remote(let node):
        guard let stream = streams[producer], stream.node == node, !stream.isOver else {
          throw TopicRegistry.moved(name)
        }
        stream.send(deadLetter, sequence: sequence) { error in loop.execute { answer(error) } }
      case .moving: throw TopicRegistry.moved(name)
      }
    } catch {
      loop.execute { answer(error) }
    }
  }

  func close(producer: UInt64) { streams.removeValue(forKey: producer)?.abandon() }

  // MARK: Another node

  private func open(
    _ name: String, at node: RemoteNode, _ producer: UInt64, _ first: UInt64, _ durably: Bool,
    _ answer: @escaping @Sendable (Result<UInt64, WireError>) -> Void
  ) throws(WireError) {
    guard let link = relay.link(to: node, as: try identity(for: name)) else {
      throw TopicRegistry.moved(name)
    }
    let loop = topics.loop
    let stream = DeadLetterStream(to: name, over: link) { [weak self] result in
      // Publications to a topic in memory can't be acknowledged as durable.
      if let self, durably, case .failure(let error) = result, error.code == .unsupported {
        loop.execute { [self] in open(name, producer: producer, from: first, durably: false, answer) }
      } else {
        loop.execute { answer(result) }
      }
    }
    streams[producer] = stream
    stream.begin(producer: producer, from: first, durably ? .durable : .received)
  }

  private func identity(for name: String) throws(WireError) -> Identity {
    guard core.authenticator != nil else { return .anonymous }
    return Identity(
      name: Self.identity, proof: .none,
      permissions: Permissions([Permissions.Rule([.publish, .create], on: try TopicPattern(name))]),
      carriesPermissions: true)
  }

  // MARK: This node

  private func openHere(
    _ name: String, _ producer: UInt64, _ first: UInt64,
    _ answer: @escaping @Sendable (Result<UInt64, WireError>) -> Void
  ) throws(WireError) {
    let topic = try topic(name)
    let next = try topic.next(of: producer, from: first, now: topics.loop.now)
    // Records that aren't on disk yet may still be lost.
    topic.whenCommitted { [topics] fault in
      topics.loop.execute { answer(fault.map { .failure(WireError($0)) } ?? .success(next)) }
    }
  }

  private func sendHere(
    _ deadLetter: BatchBuilder, _ name: String, _ producer: UInt64, _ sequence: UInt64, _ durably: Bool,
    _ answer: @escaping @Sendable (WireError?) -> Void
  ) throws(WireError) {
    let topic = try topic(name)
    try topic.append(deadLetter, by: producer, sequence, on: topics)
    guard durably else { return topics.loop.execute { answer(nil) } }
    topic.whenCommitted { [topics] fault in
      topics.loop.execute { answer(fault.map { WireError($0) }) }
    }
  }

  private func topic(_ name: String) throws(WireError) -> Topic {
    try core.registry.use(name) { [core] in core.configuration.report(.topicCreated(nil, topic: $0.name)) }
  }
}
