import SluiceMQTT
import SluiceSession
import SluiceWire

/// A message that was passed to a publication.
struct MQTTToken {
  /// 0 at QoS 0.
  var packetID: UInt16 = 0
  /// The session's number of a message at QoS 2.
  var exact: UInt64?
  /// The change of the session that must be stored before the message is sent; nil until the message has a position.
  var change: UInt64?
  /// The sequence with which an earlier connection sent the message.
  var sentAt: UInt64?
}

/// The messages of a client for one topic, as a publication of the broker.
///
/// Behaves like a value: its methods call nothing that calls it back, so the run-time check of overlapping accesses is off.
final class MQTTPublication {
  /// The purpose of the publication.
  enum Role: Hashable {
    /// A topic of the client, by the session's number.
    case topic(UInt16)
    /// The retained messages of all topics.
    case retained
    /// The client's will.
    case will
  }

  private(set) var role: Role
  let topic: String
  /// The stream on the link; nil before it is opened and after it has ended.
  var stream: UInt32?
  var isOpen = false
  /// Whether no more messages follow: the stream is cancelled once everything is acknowledged.
  var isClosing = false

  /// The change of the session that must be stored before anything is sent; nil for none.
  var barrier: UInt64?

  /// Whether acknowledgements of messages at QoS 0 are awaited as well, because a message may be in the log some time after it was sent.
  var awaitsAll = false

  /// In a cluster: the messages to send again when the topic has moved; nil on a single node.
  var resending: MQTTResending?
  /// Whether it waits to be reopened.
  var isMoving = false
  /// The number of attempts to reopen it since it was last open.
  private(set) var attempts = 0

  /// Records that aren't sent yet, with one token for each.
  @safe @exclusivity(unchecked) private(set) var pending: [UInt8] = []
  @safe @exclusivity(unchecked) private(set) var tokens: [MQTTToken] = []
  /// Unacknowledged records at QoS 1 and 2, in order.
  @safe @exclusivity(unchecked) private(set) var unacknowledged: [(sequence: UInt64, token: MQTTToken)] = []
  private(set) var lastSequence: UInt64?
  private var acknowledgedThrough: UInt64 = 0
  /// The sequence of the first message of ``tokens``.
  private var nextSequence: UInt64 = 0

  init(_ role: Role, topic: String) {
    self.role = role
    self.topic = topic
  }

  var pendingBytes: Int { pending.count }

  /// Whether everything was sent, and acknowledged if that is awaited.
  var isSettled: Bool { tokens.isEmpty && unacknowledged.isEmpty }

  /// Whether everything that was sent is in the log.
  var isInLog: Bool { tokens.isEmpty && lastSequence.map { acknowledgedThrough > $0 } ?? true }

  /// Whether some messages would have an unknown result if the stream ended now: they can't be sent again.
  var hasUnknown: Bool { resending == nil && !unacknowledged.isEmpty }

  /// Reuses the publication under another number of the session, because the client publishes to the topic again before the stream was cancelled.
  func reopen(as number: UInt16) { (role, isClosing) = (.topic(number), false) }

  /// Adds a message. Returns false if no record can contain it.
  func append(_ message: MQTTPublish, key: String? = nil, _ token: MQTTToken) -> Bool {
    let isAppended =
      if let key {
        unsafe Array(key.utf8).withUnsafeBytes {
          unsafe MQTTRecordWriter.append(message, key: $0, to: &pending)
        }
      } else {
        unsafe MQTTRecordWriter.append(message, to: &pending)
      }
    if isAppended { tokens.append(token) }
    return isAppended
  }

  /// Sends what the broker has granted.
  ///
  /// - Parameter kept: the last stored change of the session, for which messages at QoS 2 wait; nil without a store.
  /// - Returns: messages at QoS 2 that were sent, with their positions.
  func send(
    by native: inout ClientSession, to link: DoorLink, longest: Int, kept: UInt64? = nil
  ) -> [(UInt64, MQTTExactPlace)] {
    guard let stream, isOpen, barrier ?? 0 <= kept ?? .max else { return [] }
    var sent: [(UInt64, MQTTExactPlace)] = []
    var begin = 0
    var done = 0
    let ready =
      kept.map { kept in tokens.prefix { $0.exact == nil || $0.change.map { $0 <= kept } ?? false }.count }
      ?? tokens.count
    while done < ready {
      let most = Int(clamping: min(native.available(stream), UInt64(ready - done)))
      guard most > 0 else { break }
      let room = Int(clamping: min(native.availableBytes(stream), UInt64(longest)))
      let (count, length) = unsafe pending.withUnsafeBytes {
        unsafe RecordLayout.fitting(most, of: UnsafeRawBufferPointer(rebasing: $0[begin...]), in: room)
      }
      let sequence = native.publish(stream, count: UInt32(count), bytes: length)
      unsafe pending.withUnsafeBytes {
        unsafe link.publish(
          stream, from: sequence, count: count,
          UnsafeRawBufferPointer(rebasing: $0[begin..<begin + length]),
          isAwaited: isAwaited(tokens[done..<done + count]))
      }
      if let resending {
        unsafe pending.withUnsafeBytes {
          unsafe resending.keep(
            UnsafeRawBufferPointer(rebasing: $0[begin..<begin + length]), tokens[done..<done + count],
            from: sequence)
        }
      }
      for index in 0..<count {
        let token = tokens[done + index]
        guard token.packetID != 0 else { continue }
        let place = sequence + UInt64(index)
        unacknowledged.append((place, token))
        if let exact = token.exact { sent.append((exact, MQTTExactPlace(topic: topic, sequence: place))) }
      }
      lastSequence = sequence + UInt64(count) - 1
      nextSequence = sequence + UInt64(count)
      begin += length
      done += count
    }
    if done == tokens.count {
      pending.removeAllKeepingUseful()
      tokens.removeAllKeepingUseful()
    } else if done > 0 {
      pending.removeFirst(begin)
      tokens.removeFirst(done)
    }
    return sent
  }

  /// Frees memory that is reserved for further messages.
  func releaseUnused() {
    pending.releaseUnused()
    tokens.releaseUnused()
    unacknowledged.releaseUnused()
  }

  /// Whether the broker's acknowledgement of the messages is needed: not at QoS 0, unless a subscription may wait for it.
  private func isAwaited(_ messages: ArraySlice<MQTTToken>) -> Bool {
    guard case .topic = role, !awaitsAll else { return true }
    return messages.contains { $0.packetID != 0 }
  }

  /// Assigns positions in the topic to messages at QoS 2 without one.
  ///
  /// - Parameter change: the change of the session that stores the positions.
  func plan(change: UInt64) -> [(UInt64, MQTTExactPlace)] {
    guard isOpen else { return [] }
    var planned: [(UInt64, MQTTExactPlace)] = []
    for index in tokens.indices.reversed() {
      // Positions are assigned in order, so all messages before one with a position have theirs.
      if tokens[index].change != nil { break }
      guard let exact = tokens[index].exact else { continue }
      tokens[index].change = change
      planned.append((exact, MQTTExactPlace(topic: topic, sequence: nextSequence + UInt64(index))))
    }
    return planned
  }

  /// The stream is open, and the next record has this sequence. Messages that were sent before and are in the log aren't sent again.
  ///
  /// - Returns: the messages that are in the log.
  func opened(next: UInt64) -> [MQTTToken] {
    (isOpen, attempts) = (true, 0)
    acknowledgedThrough = next
    nextSequence = next
    guard tokens.contains(where: { $0.sentAt.map { $0 < next } ?? false }) else { return [] }
    var (kept, keptTokens, done): ([UInt8], [MQTTToken], [MQTTToken]) = ([], [], [])
    var start = 0
    for token in tokens {
      let size = unsafe pending.withUnsafeBytes {
        RecordLayout.itemSize(unsafe RecordLayout.word(at: $0.baseAddress! + start))
      }
      if let sentAt = token.sentAt, sentAt < next {
        done.append(token)
      } else {
        kept += pending[start..<start + size]
        keptTokens.append(token)
      }
      start += size
    }
    (pending, tokens) = (kept, keptTokens)
    return done
  }

  /// Returns the acknowledged message if exactly one is outstanding; otherwise nil, and ``acknowledged(through:)`` returns the messages.
  func onlyAcknowledged(through: UInt64) -> MQTTToken? {
    guard unacknowledged.count == 1, resending == nil, unacknowledged[0].sequence < through else {
      return nil
    }
    acknowledgedThrough = through
    return unacknowledged.removeLast().token
  }

  /// Returns the messages that an acknowledgement covers.
  func acknowledged(through: UInt64) -> [MQTTToken] {
    acknowledgedThrough = through
    resending?.acknowledged(through: through)
    let count = unacknowledged.prefix { $0.sequence < through }.count
    guard count > 0 else { return [] }
    let done = unacknowledged[..<count].map(\.token)
    unacknowledged.removeFirst(count)
    return done
  }

  /// Another node serves the topic, or its store fails: unacknowledged messages that aren't in the log are sent again once the stream is open again.
  ///
  /// - Parameter isKnown: whether the topic remembers the producer ID.
  func moved(isKnown: Bool) {
    if let resending {
      let again = resending.take(isKnown: isKnown)
      pending = again.bytes + pending
      tokens = again.tokens + tokens
    } else {
      // It is unknown which of the earlier messages at QoS 0 are in the log, so positions are assigned again.
      for index in tokens.indices { tokens[index].change = nil }
    }
    (stream, isOpen, isMoving, unacknowledged, lastSequence) = (nil, false, true, [], nil)
    attempts += 1
  }

  /// The stream has ended. Returns the messages that it won't bring into the log.
  func ended() -> [MQTTToken] {
    let lost = unacknowledged.map(\.token) + tokens.filter { $0.packetID != 0 }
    (stream, isOpen, unacknowledged, tokens, pending) = (nil, false, [], [], [])
    lastSequence = nil
    return lost
  }
}
