import SluiceIO
import SluiceWire

/// Takes over the retained messages of earlier versions of the broker, in which `mqtt.retained` was in memory and the messages were stored in
/// `mqtt.retained-log`. It publishes them to `mqtt.retained`, and deletes the former topic. It creates `mqtt.retained` in any case.
///
/// A record of the former topic has a topic's name as its key. Its payload is:
///
/// ```
///  +-----------+-----------+-----------+------------------------------------------+
///  | u64       | u64       | i64       | the body of the record in mqtt.retained; |
///  | process   | version   | time, ms  | no time and no body for a deletion       |
///  +-----------+-----------+-----------+------------------------------------------+
/// ```
///
/// If the broker stops in between, the next one begins again: a topic with a message in `mqtt.retained` keeps that message.
// @unchecked: belongs to `loop`.
final class MQTTFormerRetained: TopicPortUser, @unchecked Sendable {
  static let topic = "mqtt.retained-log"
  private static let patience = Duration.seconds(10)

  private let loop: any EventLoop
  private let accept: (any ByteStream) -> Void
  private let log: FormerLog
  private var retained: TopicPort?
  /// The topics with messages in `mqtt.retained`.
  private var present: Set<[UInt8]> = []
  private var completion: (() -> Void)?
  /// Keeps the object alive until it is done.
  private var itself: MQTTFormerRetained?

  private init(on loop: any EventLoop, accept: @escaping (any ByteStream) -> Void) {
    self.loop = loop
    self.accept = accept
    log = FormerLog(on: loop, accept: accept)
  }

  /// Calls `completion` once all messages are in `mqtt.retained`. Clients wait for it, unless the store doesn't answer.
  static func takeOver(
    on loop: any EventLoop, accept: @escaping (any ByteStream) -> Void, _ completion: @escaping () -> Void
  ) {
    let former = MQTTFormerRetained(on: loop, accept: accept)
    (former.itself, former.completion) = (former, completion)
    _ = loop.schedule(after: patience) { [weak former] in former?.completion.take()?() }
    former.log.read { [unowned former] in former.openRetained(reads: !former.log.messages.isEmpty) }
  }

  private func openRetained(reads: Bool) {
    guard retained == nil else { return }
    let terms = TopicPort.Terms(
      topic: MQTTConnection.retainedTopic, identity: "mqtt-retained", name: "retained messages of MQTT",
      settings: MQTTConnection.retainedSettings(isDurable: true), reads: reads)
    retained = TopicPort(terms, user: self, on: loop, accept: accept)
    retained?.open()
  }

  func portHas(_ record: BatchIterator.Record, at offset: UInt64) {
    guard record.isAttributed, let attributes = try? unsafe RecordAttributes(record.body),
      let key = unsafe attributes.key
    else { return }
    unsafe present.insert(Array(key))
  }

  func portIsCurrent() {
    let messages = log.messages.filter { !present.contains($0.key) }
    log.messages = [:]
    // Oldest first.
    for (_, message) in messages.sorted(by: { $0.value.offset < $1.value.offset }) {
      if let record = message.value.record(at: loop.wallClock) { retained?.append(record.bytes) }
    }
    portStored(0)
  }

  func portStored(_ count: Int) {
    guard retained?.unacknowledged == 0 else { return }
    retained?.close()
    log.delete { [self] in
      completion.take()?()
      itself = nil
    }
  }
}

/// Reads the former topic.
private final class FormerLog: TopicPortUser {
  private var port: TopicPort!
  private var completion: (() -> Void)?
  /// The newest message of each topic.
  var messages: [[UInt8]: (offset: UInt64, value: MQTTRetainedValue)] = [:]
  private var isMissing = false

  init(on loop: any EventLoop, accept: @escaping (any ByteStream) -> Void) {
    var terms = TopicPort.Terms(
      topic: MQTTFormerRetained.topic, identity: "mqtt-retained", name: "retained messages of MQTT")
    terms.isFinal = { $0 == .unknownTopic }
    port = TopicPort(terms, user: self, on: loop, accept: accept)
  }

  func read(_ completion: @escaping () -> Void) {
    self.completion = completion
    port.open()
  }

  /// Deletes the topic if it exists.
  func delete(_ completion: @escaping () -> Void) {
    guard !isMissing else { return completion() }
    self.completion = completion
    port.delete { [self] in portEnded(.unknownTopic) }
  }

  func portBegan(first: UInt64) { messages = [:] }

  func portHas(_ record: BatchIterator.Record, at offset: UInt64) {
    guard record.isAttributed, let attributes = try? unsafe RecordAttributes(record.body),
      let key = unsafe attributes.key
    else { return }
    var reader = unsafe ByteReader(attributes.payload)
    guard (try? reader.integer("process", as: UInt64.self)) != nil,
      (try? reader.integer("version", as: UInt64.self)) != nil
    else { return }
    let time = try? reader.integer("time", as: Int64.self)
    unsafe messages[Array(key)] = time.map { time in
      unsafe (offset, MQTTRetainedValue(time: time, body: Array(reader.remaining)))
    }
  }

  func portIsCurrent() { completion.take()?() }

  func portEnded(_ error: ErrorCode) {
    isMissing = true
    port.close()
    completion.take()?()
  }
}
