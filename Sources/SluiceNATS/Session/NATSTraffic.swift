import SluiceIO

/// The messages of a client, over all its connections: pending output, requests that wait for answers, and subscriptions.
///
/// A value without I/O and without a clock. ``NATSSession`` reports the beginning and the end of connections.
struct NATSTraffic {
  /// The meaning of a message from the server.
  enum Arrival: Hashable {
    /// It belongs to a subscription or request that has ended.
    case unknown
    /// A message of a subscription.
    case message
    /// The last message of a subscription.
    case lastMessage
    /// An answer to a request that stays open.
    case answer(UInt64)
    /// The answer that ends a request.
    case lastAnswer(UInt64)
    /// The request has no responders, and has ended.
    case noResponders(UInt64, subject: String)
  }

  /// The output for the transport.
  var output = NATSOutput()
  private var subscriptions = NATSSubscriptions()
  private var requests = NATSRequests()
  private var lastRequest: UInt64 = 0
  /// The common beginning of the subjects of answers; the request's number follows.
  private let inbox: [UInt8]
  private let maximumBacklog: Int

  /// - Parameters:
  ///   - inbox: the subject for answers, which no other client can guess.
  ///   - maximumBacklog: the most bytes that may wait for the transport.
  init(inbox: String, maximumBacklog: Int) {
    self.inbox = Array("\(inbox).".utf8)
    self.maximumBacklog = maximumBacklog
  }

  /// Requests that wait for answers.
  var requestCount: Int { requests.count }

  // MARK: The connection

  /// Begins with a new transport.
  mutating func begin() { output = NATSOutput() }

  /// Called when the server has accepted the client: encodes the subscriptions.
  mutating func resume() {
    let (pattern, subscriptions) = (String(decoding: inbox, as: UTF8.self) + "*", subscriptions)
    output.append { bytes in
      NATSEncoder.subscribe(pattern, queue: nil, number: NATSSubscriptions.inboxNumber, into: &bytes)
      subscriptions.encodeAll(into: &bytes)
    }
  }

  /// Ends all requests because the connection has ended.
  mutating func failRequests(_ cause: NATSError) -> [NATSAction] {
    let written = output.written
    return requests.removeAll().map { number, entry in
      .failed(number, .interrupted(entry.subject, wasWritten: entry.end <= written, cause))
    }
  }

  /// Ends all subscriptions.
  mutating func endSubscriptions(_ error: NATSError) -> [NATSAction] {
    subscriptions.removeAll().map { .subscriptionEnded($0, error) }
  }

  // MARK: Sending

  /// Encodes a message to a subject that was checked.
  ///
  /// - Parameters:
  ///   - reply: the subject for answers; empty for none.
  ///   - inserts: bytes to insert into `payload`.
  ///   - maximumPayload: the server's limit in bytes.
  /// - Throws: ``NATSError/Code-swift.struct/payloadTooLarge`` or `backlogFull`, without the server's name: nothing was encoded.
  mutating func publish(
    _ subject: String, reply: String, headers: NATSHeaders, payload: NATSBytes, inserts: [NATSInsert] = [],
    maximumPayload: Int
  ) throws(NATSError) {
    let count = try check(subject, headers, payload, inserts, maximumPayload)
    append(subject, reply: reply.utf8, headers, payload, inserts, count)
  }

  /// Encodes a message that expects an answer, to a subject that was checked. Returns the request's number.
  ///
  /// - Parameters:
  ///   - maximumPayload: the server's limit in bytes.
  ///   - isMany: whether answers arrive until ``endRequest(_:)``; each one restarts the timeout.
  ///   - timeout: the time until the answer, or the next one.
  ///   - now: the time of the call.
  /// - Throws: like ``publish(_:reply:headers:payload:maximumPayload:)``.
  mutating func request(
    _ subject: String, headers: NATSHeaders, payload: NATSBytes, inserts: [NATSInsert] = [],
    maximumPayload: Int, isMany: Bool, timeout: Duration, at now: MonotonicTime
  ) throws(NATSError) -> UInt64 {
    let count = try check(subject, headers, payload, inserts, maximumPayload)
    lastRequest += 1
    let number = lastRequest
    var reply = inbox
    NATSEncoder.append(number, to: &reply)
    append(subject, reply: reply, headers, payload, inserts, count)
    requests.add(
      number,
      .init(
        subject: subject, end: output.encoded, timeout: timeout, deadline: now + timeout, isMany: isMany))
    return number
  }

  /// Encodes a message.
  ///
  /// - Parameter count: the bytes of the whole payload.
  private mutating func append(
    _ subject: String, reply: some Collection<UInt8>, _ headers: NATSHeaders, _ payload: NATSBytes,
    _ inserts: [NATSInsert], _ count: Int
  ) {
    output.append {
      NATSEncoder.publish(
        subject, reply: reply, headers: headers, payload: count, copied: payload.count, into: &$0)
    }
    var place = 0
    for insert in inserts {
      output.append { unsafe $0.append(contentsOf: payload[place..<insert.position].memory) }
      output.append(insert)
      place = insert.position
    }
    output.append {
      unsafe $0.append(contentsOf: payload.dropFirst(place).memory)
      NATSEncoder.end(&$0)
    }
  }

  /// Checks the limits. Returns the payload's bytes.
  private func check(
    _ subject: String, _ headers: NATSHeaders, _ payload: NATSBytes, _ inserts: [NATSInsert],
    _ maximumPayload: Int
  ) throws(NATSError) -> Int {
    let count = inserts.reduce(payload.count) { $0 + $1.count }
    let size = headers.encodedCount + count
    guard size <= maximumPayload else {
      throw .payloadTooLarge(subject, bytes: size, maximum: maximumPayload)
    }
    guard output.count + size <= maximumBacklog else {
      throw .backlogFull(subject, bytes: output.count)
    }
    return count
  }

  /// Removes a request: later answers are ignored.
  mutating func endRequest(_ number: UInt64) { requests.remove(number) }

  /// Adds a subscription to checked subjects, and encodes it if there is a server. Returns its number.
  mutating func subscribe(
    _ subject: String, queue: String?, limit: UInt64?, isConnected: Bool
  ) -> UInt64 {
    let number = subscriptions.add(subject, queue: queue, limit: limit)
    if isConnected { output.append { subscriptions.encode(number, into: &$0) } }
    return number
  }

  /// Ends a subscription, and encodes that if there is a server.
  mutating func unsubscribe(_ number: UInt64, isConnected: Bool) {
    guard subscriptions.remove(number), isConnected else { return }
    output.append { NATSEncoder.unsubscribe(number, after: nil, into: &$0) }
  }

  // MARK: Receiving

  /// Handles a message from the server: counts it for its subscription, or ends the request that it answers.
  mutating func receive(_ message: NATSMessageView, at now: MonotonicTime) -> Arrival {
    guard message.subscription == NATSSubscriptions.inboxNumber else {
      return switch subscriptions.count(message.subscription) {
      case .unknown: .unknown
      case .more: .message
      case .last: .lastMessage
      }
    }
    guard message.subject.hasPrefix(inbox), let parsed = message.subject.dropFirst(inbox.count).number,
      let entry = requests[UInt64(parsed)]
    else { return .unknown }
    let number = UInt64(parsed)
    if message.status == 503, message.payload.isEmpty {
      requests.remove(number)
      return .noResponders(number, subject: entry.subject)
    }
    if entry.isMany {
      requests.prolong(number, at: now)
      return .answer(number)
    }
    requests.remove(number)
    return .lastAnswer(number)
  }

  /// Ends the subscriptions to a subject to which the server doesn't let the client subscribe.
  mutating func refuseSubscriptions(to subject: String, _ error: NATSError) -> [NATSAction] {
    subscriptions.removeAll(of: subject).map { .subscriptionEnded($0, error) }
  }

  /// Ends the first request to a subject to which the server doesn't let the client publish. Returns its number.
  mutating func refuseRequest(to subject: String) -> UInt64? {
    guard let number = requests.first(to: subject) else { return nil }
    requests.remove(number)
    return number
  }

  // MARK: Time

  /// The earliest deadline of a request, or an earlier time; nil without requests.
  var nextDeadline: MonotonicTime? { requests.nextDeadline }

  /// Ends an expired request. Returns its number and its error; nil when there is none.
  mutating func popOverdue(at now: MonotonicTime, server: String) -> (UInt64, NATSError)? {
    requests.popOverdue(at: now).map { number, entry in
      (number, .timeout(entry.subject, after: entry.timeout, server: server))
    }
  }
}
