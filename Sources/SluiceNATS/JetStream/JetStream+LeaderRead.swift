import FoundationEssentials

/// Reads that only a stream's leader answers: it has everything that was acknowledged.
extension JetStream {
  private struct LeaderAnswer: Decodable {
    struct Message: Decodable {
      var subject: String
      var seq: UInt64
      var hdrs: Data?
      var data: Data?

      /// The block of headers, also of a message without any.
      var block: [UInt8] { [UInt8](hdrs ?? Data("NATS/1.0\r\n\r\n".utf8)) }
    }

    var message: Message
  }

  /// Reads one message from the stream's leader, which has everything that was acknowledged. Slower than ``message(_:of:_:)``.
  public func leaderMessage(
    _ selector: MessageSelector, of stream: String, _ completion: @escaping Completion<StoredMessage>
  ) throws(NATSError) {
    try Self.check(name: stream)
    let server = client.server
    try call("STREAM.MSG.GET.\(stream)", try Get(selector), of: stream) {
      (result: Result<LeaderAnswer, NATSError>) in
      completion(
        result.flatMap { answer in
          let message = answer.message
          let block = [UInt8](message.hdrs ?? Data())
          guard let headers = NATSHeaders(block: block) else {
            return .failure(
              NATSError(.malformedAnswer, "a stored message's headers are malformed", server: server).of(
                stream: stream))
          }
          return .success(
            StoredMessage(
              subject: message.subject, sequence: message.seq, headers: headers,
              payload: [UInt8](message.data ?? Data())))
        })
    }
  }

  /// Reads messages in the order of their sequences from the stream's leader, one request for each: for when replicas don't answer.
  ///
  /// - Parameters:
  ///   - stream: the stream's name.
  ///   - pattern: only those whose subjects match.
  ///   - sequence: from this one on.
  ///   - count: the most messages; at least 1.
  ///   - maximumBytes: no more are asked for once so many bytes have come; nil without a limit.
  ///   - each: gets each message, valid during the call only.
  ///   - completion: called after the last one. ``ReadPage/pending`` is 0 when there are no more, and 1 when there may be.
  public func leaderMessages(
    of stream: String, matching pattern: String, from sequence: UInt64, count: Int, maximumBytes: Int? = nil,
    each: @escaping (StoredMessageView) -> Void, _ completion: @escaping Completion<ReadPage>
  ) throws(NATSError) {
    try Self.check(name: stream)
    let get = try Get(.next(pattern: pattern, from: sequence))
    let server = client.server
    try call("STREAM.MSG.GET.\(stream)", get, of: stream) { (result: Result<LeaderAnswer, NATSError>) in
      do throws(NATSError) {
        let message = try result.get().message
        let payload = [UInt8](message.data ?? Data())
        let view = { (bytes: NATSBytes) throws(NATSError) -> Void in
          try message.block.withBytes { block throws(NATSError) in
            guard NATSHeadersView.isValid(block) else {
              throw NATSError(
                .malformedAnswer, "a stored message's headers are malformed", server: server
              ).of(stream: stream)
            }
            try Array(message.subject.utf8).withBytes { subject throws(NATSError) in
              each(
                StoredMessageView(
                  subject: subject, sequence: message.seq, headers: NATSHeadersView(block), payload: bytes))
            }
          }
        }
        try payload.withBytes(view)
        let left = maximumBytes.map { $0 - payload.count }
        guard count > 1, left.map({ $0 > 0 }) ?? true else {
          return completion(.success(ReadPage(lastSequence: message.seq, pending: 1)))
        }
        try leaderMessages(
          of: stream, matching: pattern, from: message.seq + 1, count: count - 1, maximumBytes: left,
          each: each
        ) { rest in
          completion(
            rest.map { ReadPage(lastSequence: max($0.lastSequence, message.seq), pending: $0.pending) })
        }
      } catch {
        guard error.code != .messageNotFound else {
          return completion(.success(ReadPage(lastSequence: 0, pending: 0)))
        }
        completion(.failure(error))
      }
    }
  }
}
