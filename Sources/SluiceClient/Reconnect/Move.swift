import SluiceIO

/// Decides when and where a stream is reopened whose topic another node serves, or that moves to another one. On the loop only.
final class Move {
  private var reopening = Reopening()
  /// How many times in a row the node named by the client's broker has refused the stream because it doesn't serve the topic.
  private(set) var strays = 0
  /// When the stream was first refused since it was last open; nil while it is open.
  private var since: MonotonicTime?
  private var isReported = false

  /// How long a topic pauses at most when it is handed over to another node.
  private static let pause = Duration.milliseconds(500)

  /// Handles that the broker has ended or refused the stream because the topic moves.
  ///
  /// - Returns: the delay before the next attempt; nil to give up.
  func refused(_ policy: ReconnectPolicy, seed: @autoclosure () -> UInt64, at now: MonotonicTime) -> Duration?
  {
    since = since ?? now
    return reopening.refused(policy, seed: seed(), at: now)?.delay
  }

  /// Whether the stream has been refused for longer than a topic pauses when it is handed over. True once, until the stream is open again.
  func lasts(at now: MonotonicTime) -> Bool {
    guard let since, !isReported, now - since >= Self.pause else { return false }
    isReported = true
    return true
  }

  /// Notes that the node named by the client's broker doesn't serve the topic.
  func strayed() {
    strays += 1
  }

  /// Notes that the broker, or the node, has opened the stream.
  func opened(at now: MonotonicTime) {
    (strays, since, isReported) = (0, nil, false)
    reopening.taken(at: now)
  }
}

extension ReconnectPolicy {
  /// How long a stream is retried whose topic no node serves, unless another policy applies. Brokers take a topic over in about 3 s.
  static let movePatience = Duration.seconds(10)

  /// The policy for reopening the stream of a moving topic, derived from the client's policy for lost connections.
  ///
  /// The connection is open, so the delays are shorter than those before connecting, and attempts aren't counted.
  static func moves(under policy: ReconnectPolicy?) -> ReconnectPolicy {
    var moves = ReconnectPolicy()
    moves.initialDelay = .milliseconds(10)
    moves.maximumDelay = .milliseconds(500)
    let isEndless = policy.map { $0.attempts == nil } ?? false
    moves.giveUpAfter = policy?.giveUpAfter ?? (isEndless ? nil : movePatience)
    return moves
  }
}

extension ClientError {
  /// The error of a stream that the client has given up because no node has served its topic for the whole `patience`.
  static func unserved(_ topic: String?, for patience: Duration?, _ answer: ClientError) -> ClientError {
    ClientError(
      .topicMoved,
      "no node of the cluster has served \(topic.map { "topic \($0)" } ?? "the request")"
        + "\(patience.map { " for \($0)" } ?? ""); the broker's last answer: \(answer)",
      topic: topic, brokerCode: answer.brokerCode)
  }
}
