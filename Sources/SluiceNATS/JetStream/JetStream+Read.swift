import FoundationEssentials

extension JetStream {
  /// The request of a read.
  struct Get: Encodable {
    var seq: UInt64?
    var last_by_subj: String?
    var next_by_subj: String?
    var batch: Int?
    var max_bytes: Int?
    var multi_last: [String]?
    var up_to_seq: UInt64?

    init() {}

    init(_ selector: MessageSelector) throws(NATSError) {
      switch selector {
      case .sequence(let sequence): seq = sequence
      case .last(let subject):
        try NATSSubject.check(subject)
        last_by_subj = subject
      case .next(let pattern, let sequence):
        try NATSSubject.check(pattern, wildcards: true)
        next_by_subj = pattern
        seq = max(1, sequence)
      }
    }
  }

  /// Reads one message from any of the stream's replicas, which may lack the newest ones. The stream must allow direct reads.
  ///
  /// - Parameters:
  ///   - selector: the message to read.
  ///   - stream: the stream's name.
  ///   - completion: called with the message, valid during the call only. Fails with ``NATSError/Code-swift.struct/messageNotFound`` when this replica has
  ///     no such message.
  public func message(
    _ selector: MessageSelector, of stream: String,
    _ completion: @escaping (Result<StoredMessageView, NATSError>) -> Void
  ) throws(NATSError) {
    try Self.check(name: stream)
    let client = client
    try client.request("\(prefix).DIRECT.GET.\(stream)", payload: try json(Get(selector)), timeout: timeout) {
      result in
      completion(
        Self.unwrap(result, of: stream, isWrite: false) { message throws(NATSError) in
          try Self.stored(message, of: stream, server: client.server)
        })
    }
  }

  /// Returns the message of a direct read. Fails if its status reports a failure.
  private static func stored(
    _ message: NATSMessageView, of stream: String, server: String
  ) throws(NATSError) -> StoredMessageView {
    if let status = message.status { throw failure(status, message, of: stream, server: server) }
    guard let stored = StoredMessageView(direct: message) else {
      throw NATSError(
        .malformedAnswer,
        "a message of a stream has no subject or no sequence; is the engine's version 2.12 or later?",
        server: server
      ).of(stream: stream)
    }
    return stored
  }

  private static func failure(
    _ status: Int, _ message: NATSMessageView, of stream: String, server: String
  ) -> NATSError {
    let text = NATSError.bounded(message.headers?.statusText ?? "")
    let error =
      switch status {
      case 404: NATSError(.messageNotFound, "there is no such message (404 \(text))", server: server)
      case 408: NATSError(.invalidRequest, "the engine refused a read (408 \(text))", server: server)
      case 413:
        NATSError(
          .tooManySubjects,
          "more than \(maximumSubjects) subjects match a read of last messages (413 \(text)); read a part of them, or by sequence",
          server: server)
      default: NATSError(.refused, "the engine refused a read (\(status) \(text))", server: server)
      }
    return error.of(stream: stream)
  }

  private func json(_ get: Get) throws(NATSError) -> [UInt8] {
    guard let data = try? JSONEncoder().encode(get) else {
      throw NATSError(.invalidRequest, "a read can't be made into JSON")
    }
    return [UInt8](data)
  }

  /// Reads messages in the order of their sequences, from any of the stream's replicas, which may lack the newest ones.
  ///
  /// In a stream that keeps one message per subject, this reads the last messages of all subjects. A message that is replaced meanwhile is read again after
  /// the others.
  ///
  /// - Parameters:
  ///   - stream: the stream's name.
  ///   - pattern: the pattern that subjects must match.
  ///   - sequence: the first sequence.
  ///   - count: the most messages; at least 1.
  ///   - maximumBytes: the number of bytes after which the engine sends no more; nil for the engine's own limit.
  ///   - each: called with each message, valid during the call only.
  ///   - completion: called after the last message. A page without messages isn't a failure.
  public func messages(
    of stream: String, matching pattern: String, from sequence: UInt64, count: Int, maximumBytes: Int? = nil,
    each: @escaping (StoredMessageView) -> Void, _ completion: @escaping Completion<ReadPage>
  ) throws(NATSError) {
    try NATSSubject.check(pattern, wildcards: true)
    var get = Get()
    get.next_by_subj = pattern
    get.seq = max(1, sequence)
    get.batch = max(1, count)
    get.max_bytes = maximumBytes
    try read(get, of: stream, each, completion)
  }

  /// Reads the last message of each matching subject, in the order of their sequences, from any of the stream's replicas. The replica may lack the newest
  /// ones: ``ReadPage/upTo`` is its position.
  ///
  /// - Parameters:
  ///   - stream: the stream's name.
  ///   - patterns: the patterns of subjects. Together they may match ``maximumSubjects``; more fail with ``NATSError/Code-swift.struct/tooManySubjects``.
  ///   - end: the last sequence to read, as if later messages didn't exist; nil for all.
  ///   - sequence: the first sequence, for the pages after the first one.
  ///   - count: the most messages in a page; nil for the engine's own limit.
  ///   - each: called with each message, valid during the call only.
  ///   - completion: called after the last message. A page without messages isn't a failure.
  public func lastMessages(
    of stream: String, matching patterns: [String], upTo end: UInt64? = nil, from sequence: UInt64? = nil,
    count: Int? = nil, each: @escaping (StoredMessageView) -> Void,
    _ completion: @escaping Completion<ReadPage>
  ) throws(NATSError) {
    for pattern in patterns { try NATSSubject.check(pattern, wildcards: true) }
    var get = Get()
    get.multi_last = patterns
    get.up_to_seq = end
    get.seq = sequence
    get.batch = count
    try read(get, of: stream, each, completion)
  }

  private func read(
    _ get: Get, of stream: String, _ each: @escaping (StoredMessageView) -> Void,
    _ completion: @escaping Completion<ReadPage>
  ) throws(NATSError) {
    try Self.check(name: stream)
    let client = client
    var last: UInt64 = 0
    try client.requestMany("\(prefix).DIRECT.GET.\(stream)", payload: try json(get), timeout: timeout) {
      result in
      let message: NATSMessageView
      switch result {
      case .failure(let error):
        completion(.failure(error.of(stream: stream)))
        return .done
      case .success(let answer): message = answer
      }
      switch message.status {
      case 204:
        completion(
          .success(
            ReadPage(
              lastSequence: last, pending: message.headers?.number("Nats-Num-Pending") ?? 0,
              upTo: message.headers?.number("Nats-UpTo-Sequence"))))
        return .done
      case 404:
        completion(.success(ReadPage(lastSequence: last, pending: 0, upTo: nil)))
        return .done
      default: break
      }
      do throws(NATSError) {
        let stored = try Self.stored(message, of: stream, server: client.server)
        guard stored.sequence > last else {
          throw NATSError(
            .malformedAnswer, "messages of a read don't come in the order of their sequences",
            server: client.server
          ).of(stream: stream)
        }
        last = stored.sequence
        each(stored)
        return .more
      } catch {
        completion(.failure(error))
        return .done
      }
    }
  }
}
