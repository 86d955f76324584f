import SluiceIO

/// Follows the last messages of some subjects of a stream: first the existing ones, then each change.
///
/// The engine pushes them to a consumer that exists as long as the watch. When the watch has missed something (the connection was lost, or a message or the
/// engine's heartbeats didn't arrive), it starts over: ``Event/began``, the last message of each subject again, and ``Event/current``. Former subjects that
/// haven't arrived again by then were removed.
///
/// On the client's loop only. ``stop()`` ends it; so does the client's end, without an event.
public final class JetStreamWatch {
  public enum Event {
    /// The last message of each subject follows.
    case began
    case message(WatchedMessageView)
    /// All existing messages have arrived; changes follow.
    case current
    /// The watch gets no changes at present, and starts over as soon as it can.
    case interrupted(NATSError)
  }

  private let jetStream: JetStream
  private let stream: String
  private let patterns: [String]
  private let heartbeat: Duration
  private let handler: (Event) -> Void

  private var round: UInt64 = 0
  private var consumer: String?
  private var subscription: NATSClient.Subscription?
  private var observer: UInt64?
  private var timer: TimerToken?
  private var failures = 0
  private var isStopped = false
  private var isCurrent = false
  /// The consumer's number of delivered messages.
  private var delivered: UInt64 = 0
  private var lastHeard = MonotonicTime(nanoseconds: 0)

  private static let retry = (first: Duration.milliseconds(50), longest: Duration.seconds(2))

  /// - Parameter heartbeat: the interval of the engine's heartbeats; after three missing ones the watch starts over.
  fileprivate init(
    _ jetStream: JetStream, _ stream: String, _ patterns: [String], heartbeat: Duration,
    _ handler: @escaping (Event) -> Void
  ) {
    self.jetStream = jetStream
    self.stream = stream
    self.patterns = patterns
    self.heartbeat = heartbeat
    self.handler = handler
    observer = jetStream.client.observe { [weak self] isConnected in self?.connectionChanged(isConnected) }
    begin()
  }

  deinit { stop() }

  private var client: NATSClient { jetStream.client }

  /// Ends the watch. The handler isn't called any more. Calling it again does nothing.
  public func stop() {
    guard !isStopped else { return }
    isStopped = true
    if let observer { client.endObserving(observer) }
    observer = nil
    dropConsumer()
    cancelTimer()
  }

  // MARK: Rounds

  private struct ConsumerRequest: Encodable {
    struct Configuration: Encodable {
      var name: String
      var deliver_subject: String
      var ack_policy = "none"
      var max_deliver = 1
      var deliver_policy = "last_per_subject"
      var replay_policy = "instant"
      var flow_control = true
      var idle_heartbeat: Int64
      var mem_storage = true
      var num_replicas = 1
      var inactive_threshold: Int64
      var filter_subjects: [String]
    }

    var stream_name: String
    var config: Configuration
  }

  private struct ConsumerInfo: Decodable {
    var num_pending: UInt64?
  }

  private func connectionChanged(_ isConnected: Bool) {
    guard !isStopped else { return }
    if isConnected {
      failures = 0
      begin()
    } else {
      interrupt(
        NATSError(.notSent, "the connection was lost; the watch continues on the next one"), retries: false)
    }
  }

  /// Creates a consumer that replaces the one before.
  private func begin() {
    dropConsumer()
    cancelTimer()
    guard !isStopped, client.isConnected else { return }
    round += 1
    let round = round
    let inbox = client.makeInbox()
    let name = "watch-\(inbox.dropFirst("_INBOX.".count))"
    delivered = 0
    isCurrent = false
    lastHeard = client.loop.now
    let request = ConsumerRequest(
      stream_name: stream,
      config: .init(
        name: name, deliver_subject: inbox, idle_heartbeat: heartbeat.clampedNanoseconds,
        // The engine deletes the consumer when it has had no subscription for this time.
        inactive_threshold: max(heartbeat * 3, .seconds(5)).clampedNanoseconds, filter_subjects: patterns))
    do throws(NATSError) {
      subscription = try client.subscribe(inbox) { [weak self] message in self?.received(message, in: round) }
      consumer = name
      handler(.began)
      // The handler may have stopped the watch.
      guard !isStopped, self.round == round else { return }
      try jetStream.call("CONSUMER.CREATE.\(stream).\(name)", request, of: stream) {
        [weak self] (result: Result<ConsumerInfo, NATSError>) in self?.created(result, in: round)
      }
      watchHeartbeats(in: round)
    } catch {
      interrupt(error)
    }
  }

  private func created(_ result: Result<ConsumerInfo, NATSError>, in round: UInt64) {
    guard round == self.round, !isStopped, consumer != nil else { return }
    switch result {
    case .failure(let error): interrupt(error)
    case .success(let info):
      failures = 0
      if info.num_pending ?? 0 == 0, delivered == 0 { becomeCurrent() }
    }
  }

  private func becomeCurrent() {
    guard !isCurrent else { return }
    isCurrent = true
    handler(.current)
  }

  /// Called when something was missed, or a request has failed.
  private func interrupt(_ error: NATSError, retries: Bool = true) {
    guard !isStopped else { return }
    let wasRunning = consumer != nil
    dropConsumer()
    cancelTimer()
    round += 1
    if retries {
      var delay = Self.retry.first
      for _ in 0..<min(failures, 10) { delay = min(delay * 2, Self.retry.longest) }
      failures += 1
      timer = client.loop.schedule(after: delay) { [weak self] in
        self?.timer = nil
        self?.begin()
      }
    }
    if wasRunning || retries { handler(.interrupted(error.of(stream: stream))) }
  }

  private func dropConsumer() {
    if let subscription { client.unsubscribe(subscription) }
    subscription = nil
    // The engine would delete it after a while.
    if let consumer, client.isConnected {
      try? client.publish("\(jetStream.prefix).CONSUMER.DELETE.\(stream).\(consumer)")
    }
    consumer = nil
  }

  private func cancelTimer() {
    if let timer { client.loop.cancel(timer) }
    timer = nil
  }

  private func watchHeartbeats(in round: UInt64) {
    timer = client.loop.schedule(at: lastHeard + heartbeat * 3) { [weak self] in
      guard let self, round == self.round, !isStopped else { return }
      timer = nil
      // Without a connection, the watch starts over with the next one.
      guard client.isConnected else { return }
      if client.loop.now - lastHeard < heartbeat * 3 { return watchHeartbeats(in: round) }
      interrupt(
        NATSError(
          .timeout, "the engine was silent about a watch for \(heartbeat * 3); the watch begins anew",
          server: client.server))
    }
  }

  // MARK: Messages

  private func received(_ message: NATSMessageView, in round: UInt64) {
    guard round == self.round, !isStopped else { return }
    lastHeard = client.loop.now
    if message.status == 100 { return control(message) }
    guard let reply = message.reply, let position = DeliveryPosition(reply) else {
      return interrupt(
        NATSError(.malformedAnswer, "a message of a watch has no position", server: client.server))
    }
    guard position.consumerSequence == delivered + 1 else { return missed() }
    delivered += 1
    handler(.message(WatchedMessageView(message, at: position)))
    if position.pending == 0, !isStopped, round == self.round { becomeCurrent() }
  }

  /// Handles a heartbeat or a request for flow control.
  private func control(_ message: NATSMessageView) {
    if let reply = message.reply { try? client.publish(reply.text) }
    guard let headers = message.headers else { return }
    if let stalled = headers["Nats-Consumer-Stalled"] { try? client.publish(stalled.text) }
    if let last = headers.number("Nats-Last-Consumer"), last != delivered { missed() }
  }

  private func missed() {
    interrupt(
      NATSError(.cutOff, "messages of a watch were lost; the watch begins anew", server: client.server))
  }
}

/// A message of a watch, in the memory in which it arrived. Valid during the call only.
public struct WatchedMessageView {
  public let subject: NATSBytes
  public let sequence: UInt64
  /// Nil without headers.
  public let headers: NATSHeadersView?
  public let payload: NATSBytes
  /// How many more messages the engine has for the watch.
  public let pending: UInt64

  fileprivate init(_ message: NATSMessageView, at position: DeliveryPosition) {
    subject = message.subject
    sequence = position.streamSequence
    headers = message.headers
    payload = message.payload
    pending = position.pending
  }

  /// The reason why the engine has replaced a removed message by this marker: `MaxAge`, `Purge` or `Remove`; nil for a published message.
  public var removal: String? { headers?["Nats-Marker-Reason"]?.text }
}

/// The position of a delivered message, from the subject for its acknowledgement.
///
/// ```text
/// $JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer sequence>.<time>.<pending>
/// $JS.ACK.<domain>.<account>.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer sequence>.<time>.<pending>[.<token>]
/// ```
struct DeliveryPosition: Equatable {
  var streamSequence: UInt64
  var consumerSequence: UInt64
  var pending: UInt64

  init?(_ reply: NATSBytes) {
    guard reply.hasPrefix(Array("$JS.ACK.".utf8)) else { return nil }
    var tokens: [NATSBytes] = []
    var start = 0
    while start <= reply.count, tokens.count < 16 {
      let end = reply.firstIndex(of: UInt8(ascii: "."), from: start) ?? reply.count
      tokens.append(reply[start..<end])
      start = end + 1
    }
    guard tokens.count == 9 || tokens.count == 11 || tokens.count == 12 else { return nil }
    let first = tokens.count == 9 ? 5 : 7
    guard let stream = tokens[first].number, let consumer = tokens[first + 1].number,
      let pending = tokens[first + 3].number
    else { return nil }
    streamSequence = UInt64(stream)
    consumerSequence = UInt64(consumer)
    self.pending = UInt64(pending)
  }
}

extension JetStream {
  /// Follows the last messages of the subjects that `patterns` match.
  ///
  /// - Parameters:
  ///   - patterns: the subjects; `*` and `>` are wildcards.
  ///   - stream: the stream's name.
  ///   - heartbeat: the interval of the engine's heartbeats, at least 100 ms; after three missing ones the watch starts over.
  ///   - handler: called with events. Not called during this call, except with ``JetStreamWatch/Event/began`` if there is a connection.
  /// - Returns: the watch, which ends when it is released, or by ``JetStreamWatch/stop()``.
  public func watch(
    _ stream: String, matching patterns: [String], heartbeat: Duration = .seconds(1),
    _ handler: @escaping (JetStreamWatch.Event) -> Void
  ) throws(NATSError) -> JetStreamWatch {
    try Self.check(name: stream)
    for pattern in patterns { try NATSSubject.check(pattern, wildcards: true) }
    return JetStreamWatch(self, stream, patterns, heartbeat: max(heartbeat, .milliseconds(100)), handler)
  }
}
