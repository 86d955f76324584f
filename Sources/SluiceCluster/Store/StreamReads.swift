import SluiceIO
import SluiceNATS

/// Reads the shards' streams from any replica; for a while after a replica hasn't answered, only from the leaders.
///
/// A server of the engine that has lost contact with the others counts as a replica until they notice, which may take minutes. A read sent to it stays
/// unanswered, and so may each later one.
// @unchecked: used on the client's loop only.
final class StreamReads: @unchecked Sendable {
  enum Reader {
    case anyReplica
    /// Slower, but has all acknowledged messages.
    case leader
  }

  private let options: JetStreamEngineOptions
  /// The time until which only leaders are asked.
  private var leadersUntil: MonotonicTime?

  init(_ options: JetStreamEngineOptions) {
    self.options = options
  }

  /// Reads messages in the order of their sequences; see ``JetStream/messages(of:matching:from:count:maximumBytes:each:_:)``.
  func messages(
    _ api: JetStream, of stream: String, by reader: Reader = .anyReplica, matching pattern: String,
    from sequence: UInt64, count: Int, maximumBytes: Int, each: @escaping (StoredMessageView) -> Void,
    _ completion: @escaping JetStream.Completion<ReadPage>
  ) throws(NATSError) {
    let loop = api.client.loop
    func askLeader(from sequence: UInt64, _ completion: @escaping JetStream.Completion<ReadPage>)
      throws(NATSError)
    {
      try api.leaderMessages(
        of: stream, matching: pattern, from: sequence, count: min(count, Self.leaderPage),
        maximumBytes: maximumBytes, each: each, completion)
    }
    if reader == .leader { return try askLeader(from: sequence, completion) }
    if let end = leadersUntil, loop.now < end { return try askLeader(from: sequence, completion) }
    var direct = api
    direct.timeout = min(options.timeout, options.replicaTimeout ?? options.timeout)
    var last: UInt64 = 0
    try direct.messages(
      of: stream, matching: pattern, from: sequence, count: count, maximumBytes: maximumBytes,
      each: { message in
        last = message.sequence
        each(message)
      }
    ) { [self] result in
      guard case .failure(let error) = result, error.code == .timeout, options.replicaTimeout != nil else {
        return completion(result)
      }
      leadersUntil = loop.now + options.leaderReads
      do throws(NATSError) {
        try askLeader(from: max(sequence, last + 1)) { rest in
          completion(rest.map { ReadPage(lastSequence: max(last, $0.lastSequence), pending: $0.pending) })
        }
      } catch {
        completion(.failure(error))
      }
    }
  }

  /// The number of requests in a page, each for one message.
  private static let leaderPage = 64
}
