import SluiceIO
import SluiceMQTT
import SluiceWire
import Synchronization

/// A process' copy of a cluster's retained messages: it reads `mqtt.retained`, which is durable in a cluster, and keeps the newest message of each topic in
/// memory.
///
/// ```
///  clients, wills ─► mqtt.retained (durable, all records) ─► MQTTRetainedReplica ─► clients that subscribe
///                            ▲                                       │
///                            └── old messages, republished ──────────┘
/// ```
///
/// Records below the topic's floor were trimmed, and no longer count. A message far back in the topic is republished with the header
/// ``MQTTRecordHeaders/retainedAt``, so that all records before it can be trimmed. A republished record counts only if the record that the header names is
/// still the newest of its key.
// @unchecked: everything outside `state` belongs to `loop`.
final class MQTTRetainedReplica: TopicPortUser, @unchecked Sendable {
  /// A retained message.
  struct Message: Sendable {
    var offset: UInt64
    /// The time of its publication, in milliseconds since 1970.
    var time: Int64
    /// Of kind ``RecordLayout/Kind/attributed``; its key is the broker's name of the topic.
    var body: [UInt8]
  }

  private struct State {
    var messages: [[UInt8]: Message] = [:]
    var epoch: UInt64 = 0
    /// All records before this offset have been read.
    var next: UInt64 = 0
    /// The offset at which reading began; nil once all existing records have been read.
    var begin: UInt64?
    /// Topics whose messages were removed since reading began.
    var removed: Set<[UInt8]> = []
    var waiting: [(epoch: UInt64, next: UInt64, body: @Sendable () -> Void)] = []
  }

  private static let tickInterval = Duration.seconds(1)
  /// The most records to republish at a time.
  private static let turn = 512

  let loop: any EventLoop
  private let state = Mutex(State())
  private var log: TopicPort!
  /// Returns whether this process trims the topic.
  private let isFirst: () -> Bool

  init(
    on loop: any EventLoop, accept: @escaping (any ByteStream) -> Void, isFirst: @escaping () -> Bool
  ) {
    self.loop = loop
    self.isFirst = isFirst
    let terms = TopicPort.Terms(
      topic: MQTTConnection.retainedTopic, identity: "mqtt-retained", name: "retained messages of MQTT",
      settings: .untilTrimmed)
    log = TopicPort(terms, user: self, on: loop, accept: accept)
  }

  func open() {
    log.open()
    tick()
  }

  // MARK: From any thread

  /// Calls `body` once all records before an offset have been read: at once, or on the loop.
  func whenRead(_ next: UInt64, of epoch: UInt64, _ body: @escaping @Sendable () -> Void) {
    let isRead = state.withLock { state in
      // A later epoch of the topic contains nothing of the requested one.
      if state.epoch == epoch, state.next >= next || next == 0 { return true }
      state.waiting.append((epoch, next, body))
      return false
    }
    if isRead { body() }
  }

  /// The number of messages, and their bytes.
  var size: (count: Int, bytes: Int) {
    state.withLock { state in (state.messages.count, state.messages.values.reduce(0) { $0 + $1.body.count }) }
  }

  /// Returns the messages of the topics that a filter matches, oldest first.
  ///
  /// - Parameters:
  ///   - topic: the broker's name of the topic, for a filter without wildcards; nil for all topics whose names begin with `prefix`.
  ///   - first: the topic's floor.
  func messages(of topic: String?, prefix: String, from first: UInt64) -> [Message] {
    let prefix = Array(prefix.utf8)
    return state.withLock { state in
      if let topic {
        return state.messages[Array(topic.utf8)].map { $0.offset < first ? [] : [$0] } ?? []
      }
      return state.messages.filter { $0.value.offset >= first && $0.key.starts(with: prefix) }.values
        .sorted { $0.offset < $1.offset }
    }
  }

  // MARK: The log

  func portBegan(first: UInt64) {
    let epoch = log.epoch
    let released = state.withLock { state in
      state.messages = [:]
      state.epoch = epoch
      state.next = first
      (state.begin, state.removed) = (first, [])
      // No further records of the former epoch will arrive.
      defer { state.waiting.removeAll { $0.epoch != epoch } }
      return state.waiting.filter { $0.epoch != epoch }
    }
    for waiting in released { waiting.body() }
  }

  func portContinues() {
    let epoch = log.epoch
    let due = state.withLock { state in
      state.epoch = epoch
      return Self.takeDue(&state)
    }
    for body in due { body() }
  }

  func portHas(_ record: BatchIterator.Record, at offset: UInt64) {
    let due = state.withLock { state in
      Self.put(record, offset, &state)
      state.next = offset + 1
      return Self.takeDue(&state)
    }
    for body in due { body() }
  }

  private static func put(_ record: BatchIterator.Record, _ offset: UInt64, _ state: inout State) {
    guard record.isAttributed, let attributes = try? unsafe RecordAttributes(record.body),
      let key = unsafe attributes.key
    else { return }
    let name = unsafe Array(key)
    var former: UInt64?
    unsafe attributes.forEachHeader { header, value in
      if unsafe header.elementsEqual(MQTTRecordHeaders.retainedAt.utf8) {
        former = unsafe UInt64(String(decoding: value, as: UTF8.self)) ?? .max
      }
    }
    if let former, state.messages[name]?.offset != former {
      // The replaced record was trimmed before it could be read.
      guard state.messages[name] == nil, !state.removed.contains(name), let begin = state.begin,
        former < begin
      else { return }
    }
    if unsafe attributes.payload.isEmpty {
      state.messages[name] = nil
      if state.begin != nil { state.removed.insert(name) }
    } else {
      state.messages[name] = unsafe Message(offset: offset, time: record.time, body: Array(record.body))
    }
  }

  private static func takeDue(_ state: inout State) -> [@Sendable () -> Void] {
    guard !state.waiting.isEmpty else { return [] }
    let (epoch, next) = (state.epoch, state.next)
    let due = state.waiting.filter { $0.epoch == epoch && $0.next <= next }.map(\.body)
    if !due.isEmpty { state.waiting.removeAll { $0.epoch == epoch && $0.next <= next } }
    return due
  }

  func portSkipped(to offset: UInt64) {
    let due = state.withLock { state in
      state.next = max(state.next, offset)
      state.messages = state.messages.filter { $0.value.offset >= offset }
      return Self.takeDue(&state)
    }
    for body in due { body() }
  }

  func portIsCurrent() {
    state.withLock { state in (state.begin, state.removed) = (nil, []) }
  }

  // MARK: Keeping the topic short

  private func tick() {
    _ = loop.schedule(after: Self.tickInterval) { [weak self] in self?.tick() }
    guard log.isCurrent else { return }
    // An operator may have trimmed the topic.
    log.lookAtFirst()
    shorten()
  }

  private func shorten() {
    guard isFirst(), log.unacknowledged == 0 else { return }
    let (count, first, next) = state.withLock { state in
      (UInt64(state.messages.count), state.messages.values.lazy.map(\.offset).min() ?? state.next, state.next)
    }
    let limit = count * 2 + 1024
    guard next - min(next, log.firstOffset) > limit else { return }
    // Republished records have been read again before the next ones are sent.
    if first > log.firstOffset { log.trim(before: first) }
    guard next - first > limit else { return }
    let old = state.withLock { state in
      state.messages.values.filter { $0.offset < next - limit }.sorted { $0.offset < $1.offset }
        .prefix(Self.turn)
    }
    for message in old { log.append(message.again(at: loop.wallClock)) }
  }
}

extension MQTTRetainedReplica.Message {
  /// Returns the record that republishes the message. If the message has expired, the record removes it.
  fileprivate func again(at now: Int64) -> [UInt8] {
    let value = MQTTRetainedValue(time: time, body: body)
    let renewed = value.record(at: now)
    return unsafe body.withUnsafeBytes { body -> [UInt8] in
      guard let parts = try? unsafe RecordAttributes(body) else { return [] }
      var headers: [(name: [UInt8], value: [UInt8])] = []
      let again = Array(MQTTRecordHeaders.retainedAt.utf8)
      if let renewed { headers = renewed.headers.filter { $0.name != again } }
      headers.append((again, Array("\(offset)".utf8)))
      var batch = BatchBuilder()
      let payload =
        unsafe renewed == nil ? UnsafeRawBufferPointer(start: nil, count: 0) : parts.payload
      try? unsafe batch.append(key: parts.key, headers: headers, payload: payload)
      return batch.bytes
    }
  }
}

extension BatchBuilder {
  /// The headers of its only record.
  fileprivate var headers: [(name: [UInt8], value: [UInt8])] {
    unsafe bytes.withUnsafeBytes { bytes in
      var iterator = unsafe BatchIterator(bytes, time: 0)
      var headers: [(name: [UInt8], value: [UInt8])] = []
      guard let record = try? iterator.next(), record.isAttributed,
        let parts = try? unsafe RecordAttributes(record.body)
      else { return [] }
      unsafe parts.forEachHeader { name, value in
        unsafe headers.append((Array(name), Array(value)))
      }
      return headers
    }
  }
}
