import FoundationEssentials

/// Reads that only a stream's leader answers, since the leader has all acknowledged messages.
extension JetStream {
  private struct LeaderAnswer: Decodable {
    struct Message: Decodable {
      var subject: String
      var seq: UInt64
      var hdrs: Data?
      var data: Data?
    }

    var message: Message
  }

  /// Reads one message from the stream's leader, which has all acknowledged messages. Slower than ``message(_:of:_:)``.
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

  /// Reads messages in the order of their sequences from the stream's leader, with one request for each. Used when replicas don't answer.
  ///
  /// - Parameters:
  ///   - stream: the stream's name.
  ///   - pattern: the pattern that subjects must match.
  ///   - sequence: the first sequence.
  ///   - count: the most messages; at least 1.
  ///   - maximumBytes: the number of bytes after which no further messages are requested; nil for no limit.
  ///   - each: called with each message, valid during the call only.
  ///   - completion: called after the last message. ``ReadPage/pending`` is 0 when there are no more, and 1 when there may be more.
  public func leaderMessages(
    of stream: String, matching pattern: String, from sequence: UInt64, count: Int, maximumBytes: Int? = nil,
    each: @escaping (StoredMessageView) -> Void, _ completion: @escaping Completion<ReadPage>
  ) throws(NATSError) {
    try leaderMessage(.next(pattern: pattern, from: sequence), of: stream) { result in
      do throws(NATSError) {
        let message = try result.get()
        try message.withView(each)
        let left = maximumBytes.map { $0 - message.payload.count }
        guard count > 1, left.map({ $0 > 0 }) ?? true else {
          return completion(.success(ReadPage(lastSequence: message.sequence, pending: 1)))
        }
        try leaderMessages(
          of: stream, matching: pattern, from: message.sequence + 1, count: count - 1, maximumBytes: left,
          each: each
        ) { rest in
          completion(
            rest.map { ReadPage(lastSequence: max($0.lastSequence, message.sequence), pending: $0.pending) })
        }
      } catch  where error.code == .messageNotFound {
        completion(.success(ReadPage(lastSequence: 0, pending: 0)))
      } catch {
        completion(.failure(error))
      }
    }
  }
}
