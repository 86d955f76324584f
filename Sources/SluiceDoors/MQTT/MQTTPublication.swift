import SluiceMQTT
import SluiceSession
import SluiceWire

/// A message that has been given to a publication.
struct MQTTToken {
  /// 0 at QoS 0.
  var packetID: UInt16 = 0
  /// Of the session, for a message at QoS 2.
  var exact: UInt64?
  /// The change of the session that has to be kept before the message is sent; nil before the message has a place.
  var change: UInt64?
  /// Where the message stood in the topic when it was sent on an earlier connection.
  var sentAt: UInt64?
}

/// The messages of a client for one topic: a publication of the broker.
///
/// A value in all but its name: its methods call nothing that calls it back, so overlapping accesses aren't checked for at run time.
final class MQTTPublication {
  /// What the publication is for.
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
  /// Nothing more is published: the stream is cancelled when everything is acknowledged.
  var isClosing = false

  /// The change of the session that has to be kept before anything is sent; nil for none.
  var barrier: UInt64?

  /// Whether the acknowledgements of messages at QoS 0 are awaited, too: where a message may be in the log later than it is sent.
  var awaitsAll = false

  /// In a cluster: what is sent again when the topic has moved; nil on one node.
  var resending: MQTTResending?
  /// Whether it waits to be opened again.
  var isMoving = false
  /// How many times it was opened again since it was open last.
  private(set) var attempts = 0

  /// Records that aren't sent yet, and one token for each.
  @safe @exclusivity(unchecked) private(set) var pending: [UInt8] = []
  @safe @exclusivity(unchecked) private(set) var tokens: [MQTTToken] = []
  /// Records at QoS 1 and 2 that aren't acknowledged, in their order.
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

  /// Whether everything was sent, and acknowledged where that is awaited.
  var isSettled: Bool { tokens.isEmpty && unacknowledged.isEmpty }

  /// Whether everything that was sent is in the log.
  var isInLog: Bool { tokens.isEmpty && lastSequence.map { acknowledgedThrough > $0 } ?? true }

  /// Whether messages were sent of which nothing tells whether they are in the log, should the stream end: they aren't sent again.
  var hasUnknown: Bool { resending == nil && !unacknowledged.isEmpty }

  /// The topic is published to again, by that number of the session, before the stream was cancelled.
  func reopen(as number: UInt16) { (role, isClosing) = (.topic(number), false) }

  /// Adds a message. Returns false for one that no record can have.
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
  /// - Parameter kept: the last change of the session that is kept, which messages at QoS 2 wait for; nil where nothing is.
  /// - Returns: messages at QoS 2 that were sent, with their places.
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

  /// Returns the memory that is kept for messages to come.
  func releaseUnused() {
    pending.releaseUnused()
    tokens.releaseUnused()
    unacknowledged.releaseUnused()
  }

  /// Whether the broker's acknowledgement of the messages makes a difference: at QoS 0 none does, but where a subscription may wait for it.
  private func isAwaited(_ messages: ArraySlice<MQTTToken>) -> Bool {
    guard case .topic = role, !awaitsAll else { return true }
    return messages.contains { $0.packetID != 0 }
  }

  /// Gives the messages at QoS 2 that have none their places in the topic.
  ///
  /// - Parameter change: the change of the session with which the places are kept.
  func plan(change: UInt64) -> [(UInt64, MQTTExactPlace)] {
    guard isOpen else { return [] }
    var planned: [(UInt64, MQTTExactPlace)] = []
    for index in tokens.indices.reversed() {
      // They come in order: all before one that has a place have theirs.
      if tokens[index].change != nil { break }
      guard let exact = tokens[index].exact else { continue }
      tokens[index].change = change
      planned.append((exact, MQTTExactPlace(topic: topic, sequence: nextSequence + UInt64(index))))
    }
    return planned
  }

  /// The stream is open, and the next record has that sequence: what was sent before and is in the log isn't sent again.
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

  /// Returns the message that an acknowledgement has told to be in the log, where it is the only one that waits for one; nil for others, of which
  /// ``acknowledged(through:)`` tells.
  func onlyAcknowledged(through: UInt64) -> MQTTToken? {
    guard unacknowledged.count == 1, resending == nil, unacknowledged[0].sequence < through else {
      return nil
    }
    acknowledgedThrough = through
    return unacknowledged.removeLast().token
  }

  /// Returns the messages that an acknowledgement has told to be in the log.
  func acknowledged(through: UInt64) -> [MQTTToken] {
    acknowledgedThrough = through
    resending?.acknowledged(through: through)
    let count = unacknowledged.prefix { $0.sequence < through }.count
    guard count > 0 else { return [] }
    let done = unacknowledged[..<count].map(\.token)
    unacknowledged.removeFirst(count)
    return done
  }

  /// Another node serves the topic, or its store fails: what isn't acknowledged is sent again once the stream is open again, unless it is in the log.
  ///
  /// - Parameter isKnown: whether the topic knows the producer.
  func moved(isKnown: Bool) {
    if let resending {
      let again = resending.take(isKnown: isKnown)
      pending = again.bytes + pending
      tokens = again.tokens + tokens
    } else {
      // Of messages at QoS 0 before them it isn't known which are in the log.
      for index in tokens.indices { tokens[index].change = nil }
    }
    (stream, isOpen, isMoving, unacknowledged, lastSequence) = (nil, false, true, [], nil)
    attempts += 1
  }

  /// The stream has ended. Returns the messages that won't get into the log by it.
  func ended() -> [MQTTToken] {
    let lost = unacknowledged.map(\.token) + tokens.filter { $0.packetID != 0 }
    (stream, isOpen, unacknowledged, tokens, pending) = (nil, false, [], [], [])
    lastSequence = nil
    return lost
  }
}
