import SluiceIO

/// The caller's messages, requests and subscriptions.
extension NATSSession {
  /// Encodes a message.
  ///
  /// - Parameters:
  ///   - subject: the subject of the message; without wildcards.
  ///   - reply: the subject for answers; empty for none.
  ///   - headers: the headers; empty to send none.
  ///   - payload: the payload, together with `inserts` within the server's limit (`max_payload`).
  ///   - inserts: bytes to insert into `payload`, which are sent without being copied.
  /// - Throws: the reason why nothing was sent: ``NATSError/Code-swift.struct/notSent``, `payloadTooLarge`, `invalidSubject`, `backlogFull`.
  public mutating func publish(
    _ subject: String, reply: String = "", headers: NATSHeaders = NATSHeaders(), payload: NATSBytes,
    inserts: [NATSInsert] = []
  ) throws(NATSError) {
    if !reply.isEmpty { try NATSSubject.check(reply) }
    try checkPublish(subject)
    do throws(NATSError) {
      try traffic.publish(
        subject, reply: reply, headers: headers, payload: payload, inserts: inserts,
        maximumPayload: maximumPayload)
    } catch {
      throw error.at(server)
    }
  }

  private func checkPublish(_ subject: String) throws(NATSError) {
    try NATSSubject.check(subject)
    guard phase == .open else {
      throw .notSent(
        subject, isLeaving: phase == .leaving, isClosed: phase == .closed, last: lastError,
        server: phase == .leaving ? server : nil)
    }
  }

  /// Encodes a message that expects an answer.
  ///
  /// - Parameters:
  ///   - subject: the subject of the message; without wildcards.
  ///   - headers: the headers; empty to send none.
  ///   - payload: the payload, together with `inserts` within the server's limit (`max_payload`).
  ///   - inserts: like those of ``publish(_:reply:headers:payload:inserts:)``.
  ///   - isMany: whether answers arrive until ``endRequest(_:)``; each one restarts the timeout.
  ///   - timeout: the time until the answer, or the next one.
  ///   - now: the time of the call.
  /// - Returns: the request's number.
  /// - Throws: the reason why nothing was sent.
  public mutating func request(
    _ subject: String, headers: NATSHeaders = NATSHeaders(), payload: NATSBytes,
    inserts: [NATSInsert] = [], isMany: Bool = false, timeout: Duration, at now: MonotonicTime
  ) throws(NATSError) -> UInt64 {
    try checkPublish(subject)
    do throws(NATSError) {
      return try traffic.request(
        subject, headers: headers, payload: payload, inserts: inserts, maximumPayload: maximumPayload,
        isMany: isMany, timeout: timeout, at: now)
    } catch {
      throw error.at(server)
    }
  }

  /// Encodes messages directly after one another, the last one as a request. Either all of them are encoded or none.
  ///
  /// - Parameters:
  ///   - messages: at least one.
  ///   - timeout: the time for the answer to the last one.
  ///   - now: the time of the call.
  /// - Returns: the request's number.
  /// - Throws: the reason why nothing was sent.
  mutating func requestBehind(
    _ messages: ArraySlice<NATSMessage>, timeout: Duration, at now: MonotonicTime
  ) throws(NATSError) -> UInt64 {
    let mark = output.encoded
    do throws(NATSError) {
      for message in messages.dropLast() {
        try message.payload.withBytes { bytes throws(NATSError) in
          try publish(message.subject, headers: message.headers, payload: bytes, inserts: message.inserts)
        }
      }
      let last = messages[messages.endIndex - 1]
      return try last.payload.withBytes { bytes throws(NATSError) in
        try request(
          last.subject, headers: last.headers, payload: bytes, inserts: last.inserts, timeout: timeout,
          at: now)
      }
    } catch {
      // Without a connection, nothing was encoded.
      if output.encoded > mark { output.rewind(to: mark) }
      throw error
    }
  }

  /// Removes a request: later answers are ignored.
  public mutating func endRequest(_ number: UInt64) {
    traffic.endRequest(number)
  }

  /// Subscribes, on the present connection and on all later ones.
  ///
  /// - Parameters:
  ///   - subject: the subject; `*` and `>` are wildcards.
  ///   - queue: a queue group, whose members share the messages; nil to get all messages.
  ///   - limit: the number of messages after which the subscription ends.
  /// - Returns: the subscription's number.
  /// - Throws: ``NATSError/Code-swift.struct/invalidSubject``.
  public mutating func subscribe(
    _ subject: String, queue: String? = nil, limit: UInt64? = nil
  ) throws(NATSError) -> UInt64 {
    try NATSSubject.check(subject, wildcards: true)
    if let queue { try NATSSubject.check(queue) }
    guard phase != .closed else { throw NATSError(.closed, "the client of the NATS servers was closed") }
    return traffic.subscribe(subject, queue: queue, limit: limit, isConnected: isAccepted)
  }

  /// Ends a subscription. Messages in flight are ignored.
  public mutating func unsubscribe(_ number: UInt64) {
    traffic.unsubscribe(number, isConnected: isAccepted)
  }
}
