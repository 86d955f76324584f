import SluiceAccess
import SluiceIO
import SluiceMQTT
import SluiceWire

/// Publishes the will of a client whose connection the broker has closed, with the client's identity, so that the client's publish permissions apply.
/// Permissions from a token ended with the connection.
///
/// Belongs to its loop. Retains itself until the will is in its topics, is refused, or the broker stops.
final class MQTTWillSender {
  /// A topic that gets a record of the will.
  private final class Part: TopicPortUser {
    var port: TopicPort?
    /// Called once, with whether the record is in the topic or was refused.
    var done: ((Bool) -> Void)?

    func portStored(_ count: Int) { end(true) }

    func portEnded(_ error: ErrorCode) { end(error != .shuttingDown) }

    private func end(_ isOver: Bool) {
      port.take()?.close()
      done.take()?(isOver)
    }
  }

  private var parts: [Part] = []
  private var isOver = true
  private var completion: ((Bool) -> Void)?

  /// - Parameters:
  ///   - producer: the producer ID that prevents duplicates if several processes publish the will; nil for a random one.
  ///   - retainedSettings: of the topic of retained messages.
  ///   - accept: passes a connection to the broker, on `loop`.
  ///   - completion: called on `loop` once the will is in the log or was refused, with true; with false if it must be published again.
  static func publish(
    _ will: MQTTConnect.Will, of key: MQTTHub.Key, on loop: any EventLoop, producer: UInt64?,
    retainedSettings: TopicSettings, accept: @escaping (any ByteStream) -> Void,
    _ completion: @escaping (Bool) -> Void
  ) {
    guard let topic = try? MQTTTopicName.brokerName(will.topic) else { return completion(true) }
    let sender = MQTTWillSender()
    sender.completion = completion
    var terms = TopicPort.Terms(
      topic: topic, identity: key.identity, name: "will of MQTT", user: key.clientID,
      settings: TopicSettings())
    terms.acknowledgement = .received
    terms.reads = false
    terms.producer = producer ?? UInt64.random(in: 1 ... .max)
    terms.isFinal = { $0.endsWill }
    will.withMessage { message in
      if will.isRetained {
        var copy = terms
        (copy.topic, copy.producer, copy.settings) = (MQTTConnection.retainedTopic, 0, retainedSettings)
        sender.add(message, key: topic, TopicPort(copy, user: sender.newPart(), on: loop, accept: accept))
      }
      sender.add(message, key: nil, TopicPort(terms, user: sender.newPart(), on: loop, accept: accept))
    }
    sender.begin()
  }

  private func newPart() -> Part {
    let part = Part()
    part.done = { [self, unowned part] isOver in ended(part, isOver) }
    parts.append(part)
    return part
  }

  private func add(_ message: MQTTPublish, key: String?, _ port: TopicPort) {
    var record: [UInt8] = []
    let isAppended =
      if let key {
        unsafe Array(key.utf8).withUnsafeBytes {
          unsafe MQTTRecordWriter.append(message, key: $0, to: &record)
        }
      } else {
        unsafe MQTTRecordWriter.append(message, to: &record)
      }
    // A message with more properties than a record can contain isn't published.
    guard isAppended else { return _ = parts.popLast() }
    port.append(record)
    parts.last?.port = port
  }

  private func begin() {
    guard !parts.isEmpty else { return finish() }
    for part in parts { part.port?.open() }
  }

  private func ended(_ part: Part, _ isOver: Bool) {
    self.isOver = self.isOver && isOver
    parts.removeAll { $0 === part }
    if parts.isEmpty { finish() }
  }

  private func finish() { completion.take()?(isOver) }
}

extension ErrorCode {
  /// Whether this error is final for a will. Other errors are temporary, and the will waits.
  fileprivate var endsWill: Bool {
    switch self {
    case .authenticationFailed, .accessRevoked, .permissionDenied: true
    default: !endsConnection && !isPassing
    }
  }
}
