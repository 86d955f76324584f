import SluiceWire

/// The client's side of the protocol: a frame in, an action out.
///
/// A value without I/O and without a clock. It holds the open streams, their states, and the grants in either direction; it doesn't know
/// subscribers, sockets or buffers. Each error that it throws is a protocol violation of the broker and ends the connection.
///
/// A stream's last frame frees its number: CANCELLED if CANCEL was sent, otherwise COMPLETE, ERROR, or a request's answer. The session drops
/// the frames between CANCEL and CANCELLED.
package struct ClientSession {
  package enum Phase: Hashable {
    /// Waiting for WELCOME.
    case handshake
    case open
    /// The broker has sent GOAWAY: open streams continue, no new ones are opened.
    case leaving
  }

  enum Stream {
    case free
    case subscription(Inbound)
    case publication(Outbound)
    case request
    /// CANCEL was sent.
    case cancelling
    /// A subscription's topic has ended, and commits may still follow: see ``ClientSession/releaseCommitting(_:)``.
    case committing
  }

  /// A subscription.
  struct Inbound {
    var credit: Credit
    var isOpen = false
    var isLive = false
    /// The offset that the next batch must start with; the lowest if there may be gaps; unused by group members.
    var nextOffset: UInt64 = 0
    /// Batches may start beyond the next offset.
    var hasGaps = false
    /// It subscribes to a pattern: the subscriber tracks the offsets of each topic.
    var isPattern = false
    /// It is a group member: it gets a part of the records, some of them repeatedly.
    var isShared = false
    /// COMPLETE doesn't free its number.
    var commits = false

    /// Whether the next records may start at `offset`.
    func accepts(at offset: UInt64) -> Bool {
      offset == nextOffset || hasGaps && offset > nextOffset || isPattern || isShared
    }
  }

  /// A publication.
  struct Outbound {
    var credit = Credit()
    /// Bytes of batches that may be published in total, and that were.
    var bytesGranted: UInt64 = 0
    var bytesSpent: UInt64 = 0
    var acknowledged: UInt64 = 0
    /// The sequence to begin with, unless the broker already has later ones.
    var firstSequence: UInt64 = 0
    var isOpen = false
    /// COMPLETE was sent.
    var isCompleting = false
    /// The broker reports whether the topic is connected; its last report.
    var isSource = false
    var isConnected: Bool?
  }

  package private(set) var phase = Phase.handshake
  /// The features of HELLO.
  let features: UInt64
  /// Whether the broker may send REDIRECT.
  package private(set) var mayBeRedirected = false
  private(set) var streams: [Stream] = []
  private(set) var numbers = StreamNumbers()
  private(set) var keepalive = Keepalive(milliseconds: 0, now: 0)
  private(set) var lastToken: UInt64 = 0

  /// - Parameter features: those of HELLO.
  package init(features: UInt64 = 0) {
    self.features = features
  }

  /// Continues an earlier session, whose handshake is complete.
  mutating func goOn(
    _ mayBeRedirected: Bool, _ lastToken: UInt64, _ keepalive: Keepalive, _ numbers: StreamNumbers,
    _ streams: [Stream]
  ) {
    phase = .open
    self.keepalive = keepalive
    (self.mayBeRedirected, self.lastToken) = (mayBeRedirected, lastToken)
    (self.numbers, self.streams) = (numbers, streams)
  }

  // MARK: Frames in

  /// Handles one frame.
  ///
  /// - Throws: the broker's protocol violation. The caller must close the connection.
  package mutating func receive(
    _ header: FrameHeader, _ body: UnsafeRawBufferPointer, at now: UInt64
  ) throws(WireError) -> ClientAction {
    if phase == .handshake { return try unsafe handshake(header, body, now) }
    guard try header.admission(at: .client) == .take else { return .none }
    let stream = header.stream
    switch header.type {
    case .deliver: return try unsafe deliver(stream, body)
    case .subscribed: return try unsafe subscribed(stream, Subscribed(body: body))
    case .live: return try unsafe live(stream, Live(body: body))
    case .producers: return try unsafe producers(stream, Producers(body: body))
    case .lag: return try unsafe lag(stream, Lag(body: body))
    case .matched: return try unsafe matched(stream, Matched(body: body))
    case .unmatched: return try unsafe unmatched(stream, Unmatched(body: body))
    case .selectTopic: return try unsafe selectedTopic(stream, SelectTopic(body: body))
    case .deliveries: return try unsafe deliveries(stream, Deliveries(body: body))
    case .publishOpened: return try unsafe publishOpened(stream, PublishOpened(body: body))
    case .demand: return try unsafe demand(stream, Demand(body: body))
    case .ack: return try unsafe ack(stream, Ack(body: body))
    case .connected: return try connection(stream, isConnected: true)
    case .disconnected: return try connection(stream, isConnected: false)
    case .complete: return try unsafe complete(stream, Complete(body: body))
    case .cancelled: return try unsafe cancelled(stream, Cancelled(body: body))
    case .error: return try unsafe error(stream, Fault(body: body))
    case .redirect: return try unsafe redirect(stream, Redirect(body: body))
    case .topicInfo: return try unsafe answer(header, .topicInfo(stream: stream, TopicInfo(body: body)))
    case .topics: return try unsafe answer(header, .topics(stream: stream, Topics(body: body)))
    case .cursors: return try unsafe answer(header, .cursors(stream: stream, Cursors(body: body)))
    case .states: return try unsafe answer(header, .states(stream: stream, TopicStates(body: body)))
    case .connections:
      return try unsafe answer(header, .connections(stream: stream, Connections(body: body)))
    case .brokerInfo: return try unsafe answer(header, .brokerInfo(stream: stream, BrokerInfo(body: body)))
    case .clusterInfo:
      return try unsafe answer(header, .clusterInfo(stream: stream, ClusterInfo(body: body)))
    case .done: return try answer(header, .done(stream: stream))
    case .authenticated:
      return try unsafe answer(header, .authenticated(stream: stream, Authenticated(body: body)))
    case .ping: return unsafe .answerPing(token: try Ping(body: body).token)
    case .pong: return unsafe .pong(token: try Pong(body: body).token)
    case .goAway:
      phase = .leaving
      return unsafe .goAway(try GoAway(body: body))
    default: throw WireError(.unexpectedFrame, "\(header.type) came after the handshake")
    }
  }

  private mutating func handshake(
    _ header: FrameHeader, _ body: UnsafeRawBufferPointer, _ now: UInt64
  ) throws(WireError) -> ClientAction {
    switch header.type {
    case .error where header.stream == 0:
      return unsafe .failed(try Fault(body: body))
    case .welcome:
      _ = try header.admission(at: .client)
      let welcome = try unsafe Welcome(body: body)
      guard Limits.versions.contains(welcome.version) else {
        throw WireError(
          .versionMismatch,
          "the broker chose version \(welcome.version) of the protocol; this client speaks "
            + "\(Limits.versions.lowerBound) to \(Limits.versions.upperBound)")
      }
      guard welcome.features & ~features == 0 else {
        throw WireError(.malformedFrame, "WELCOME grants features that HELLO didn't name")
      }
      guard welcome.maximumFrame >= Limits.smallestFrame else {
        throw WireError(
          .malformedFrame,
          "WELCOME limits frames to \(welcome.maximumFrame) bytes; at least \(Limits.smallestFrame) must be taken"
        )
      }
      guard welcome.maximumStreams > 0 else {
        throw WireError(.malformedFrame, "WELCOME allows no streams; at least 1 must be allowed")
      }
      mayBeRedirected = welcome.features & Feature.redirects != 0
      numbers.limit = welcome.maximumStreams
      keepalive = Keepalive(milliseconds: welcome.keepalive, now: now)
      phase = .open
      return .opened(welcome)
    default:
      throw WireError(
        .notSluice, "the first frame must be WELCOME: the peer doesn't speak the Sluice protocol")
    }
  }
}

// MARK: - Requests

extension ClientSession {
  /// Opens a stream for one request and its answer.
  ///
  /// - Returns: the stream's number; nil when the broker accepts no more streams.
  package mutating func openRequest() -> UInt32? {
    open(.request)
  }

  private mutating func answer(
    _ header: FrameHeader, _ action: ClientAction
  ) throws(WireError) -> ClientAction {
    guard case .request = self[header.stream] else { throw misplaced(header.type, header.stream) }
    free(header.stream)
    return action
  }
}

// MARK: - Ends

extension ClientSession {
  /// Cancels a subscription or publication. Returns whether CANCEL is to be sent.
  package mutating func cancel(_ stream: UInt32) -> Bool {
    switch self[stream] {
    case .subscription, .publication:
      self[stream] = .cancelling
      return true
    case .free, .request, .cancelling, .committing:
      return false
    }
  }

  private mutating func complete(_ stream: UInt32, _ frame: Complete) throws(WireError) -> ClientAction {
    switch self[stream] {
    case .subscription(let inbound) where inbound.isOpen:
      if inbound.isPattern { return .topicEnded(stream: stream, frame.ending) }
      if inbound.commits { self[stream] = .committing } else { free(stream) }
    case .publication(let outbound) where outbound.isOpen: free(stream)
    case .cancelling: return .none
    default: throw misplaced(.complete, stream)
    }
    return .ended(stream: stream, frame.ending)
  }

  private mutating func cancelled(_ stream: UInt32, _ frame: Cancelled) throws(WireError) -> ClientAction {
    switch self[stream] {
    case .cancelling:
      free(stream)
      return .cancelled
    case .publication(let outbound) where outbound.isCompleting:
      free(stream)
      return .completed(stream: stream, startedOver: frame.hasStartedOver)
    default: throw misplaced(.cancelled, stream)
    }
  }

  private mutating func error(_ stream: UInt32, _ fault: Fault) throws(WireError) -> ClientAction {
    if stream == 0 { return .failed(fault) }
    switch self[stream] {
    case .subscription, .publication, .request:
      free(stream)
      return .refused(stream: stream, fault)
    case .cancelling: return .none
    case .free, .committing: throw misplaced(.error, stream)
    }
  }

  /// Takes REDIRECT, which comes instead of SUBSCRIBED or PUBLISH_OPENED.
  private mutating func redirect(_ stream: UInt32, _ frame: Redirect) throws(WireError) -> ClientAction {
    switch self[stream] {
    case .subscription(let inbound) where mayBeRedirected && !inbound.isOpen && !inbound.isPattern: break
    case .publication(let outbound) where mayBeRedirected && !outbound.isOpen: break
    case .cancelling where mayBeRedirected: return .none
    default: throw misplaced(.redirect, stream)
    }
    free(stream)
    return .redirected(stream: stream, frame)
  }

  /// Releases the number of a stream whose topic has ended, once nothing more is to be committed on it.
  package mutating func releaseCommitting(_ stream: UInt32) {
    if case .committing = self[stream] { free(stream) }
  }
}

// MARK: - Keepalive

extension ClientSession {
  package enum Watch: Hashable {
    /// Check again at that time; `.max` is never.
    case sleep(until: UInt64)
    /// Send PING with this token, and check again at that time.
    case ping(token: UInt64, next: UInt64)
    /// The broker was silent for the whole keepalive time.
    case expired
  }

  /// Notes that bytes came from the broker.
  package mutating func heard(at now: UInt64) {
    keepalive.heard(at: now)
  }

  /// Returns what to do about the broker's silence.
  package mutating func watch(at now: UInt64) -> Watch {
    switch keepalive.check(at: now) {
    case .sleep(let time): .sleep(until: time)
    case .ping(let next): .ping(token: makeToken(), next: next)
    case .expired: .expired
    }
  }

  /// Returns a PING token that is unique on this connection.
  package mutating func makeToken() -> UInt64 {
    lastToken += 1
    return lastToken
  }
}

// MARK: - The stream table

extension ClientSession {
  mutating func open(_ stream: Stream) -> UInt32? {
    assert(phase == .open, "streams are opened on an open connection")
    guard let number = numbers.take() else { return nil }
    if streams.count < Int(number) { streams.append(.free) }
    self[number] = stream
    return number
  }

  mutating func free(_ stream: UInt32) {
    self[stream] = .free
    numbers.release(stream)
    guard numbers.highest < streams.count else { return }
    streams.removeLast(streams.count - Int(numbers.highest))
    // The room for a stream that a client with few of them opens for a moment isn't kept.
    if streams.count <= Self.fewStreams { streams = streams.map(\.self) }
  }

  private static var fewStreams: Int { 4 }

  func misplaced(_ type: FrameType, _ stream: UInt32) -> WireError {
    if case .free = self[stream] {
      return WireError(.invalidStream, "\(type) came on stream \(stream), which isn't open")
    }
    return WireError(.unexpectedFrame, "\(type) came on stream \(stream), which can't have it")
  }

  subscript(stream: UInt32) -> Stream {
    get {
      let index = Int(stream) - 1
      return streams.indices.contains(index) ? streams[index] : .free
    }
    set { streams[Int(stream) - 1] = newValue }
  }
}

/// Allocates stream numbers, starting at 1.
///
/// Released numbers are used again first, so the highest number never exceeds the largest count of streams open at once.
package struct StreamNumbers {
  /// The highest number that the broker accepts.
  package var limit: UInt32 = 0
  /// The highest number that is in use or was released.
  var highest: UInt32 = 0
  var returned: [UInt32] = []

  package init() {}

  /// Whether all are in use.
  package var areUsedUp: Bool { returned.isEmpty && highest >= limit }

  /// Returns a free number; nil when all are in use.
  package mutating func take() -> UInt32? {
    if let number = returned.popLast() { return number }
    guard highest < limit else { return nil }
    highest += 1
    return highest
  }

  /// Releases a number whose stream is closed on both sides.
  package mutating func release(_ number: UInt32) {
    assert(number > 0 && number <= highest && !returned.contains(number), "a number is released once")
    guard number == highest else { return returned.append(number) }
    highest -= 1
  }
}
