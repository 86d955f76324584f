import SluiceIO

/// When and where the stream of a topic that another node serves, or that moves to another, is opened again. On the loop only.
final class Move {
  private var reopening = Reopening()
  /// How many times in a row the node that the client's broker has named hasn't opened the stream, since the topic isn't there.
  private(set) var strays = 0
  /// When the stream was refused first, since it was open last; nil while it is open.
  private var since: MonotonicTime?
  private var isReported = false

  /// How long a topic pauses at the most when it goes to another node in order.
  private static let pause = Duration.milliseconds(500)

  /// The broker has ended the stream, or has refused it, since the topic moves.
  ///
  /// - Returns: the delay before the next attempt; nil to give up.
  func refused(_ policy: ReconnectPolicy, seed: @autoclosure () -> UInt64, at now: MonotonicTime) -> Duration?
  {
    since = since ?? now
    return reopening.refused(policy, seed: seed(), at: now)?.delay
  }

  /// Whether the stream has been refused for longer than a topic pauses when it moves in order. True once, until the stream is open again.
  func lasts(at now: MonotonicTime) -> Bool {
    guard let since, !isReported, now - since >= Self.pause else { return false }
    isReported = true
    return true
  }

  /// The node that the client's broker has named doesn't serve the topic.
  func strayed() {
    strays += 1
  }

  /// The broker, or the node, has opened the stream.
  func opened(at now: MonotonicTime) {
    (strays, since, isReported) = (0, nil, false)
    reopening.taken(at: now)
  }
}

extension ReconnectPolicy {
  /// How long a stream without a served topic is tried, unless another policy says so. Brokers take a topic over in about 3 s.
  static let movePatience = Duration.seconds(10)

  /// The policy by which the stream of a moving topic is opened again, under the client's policy for lost connections.
  ///
  /// The connection stands, so that the delays are shorter than those before connecting, and attempts aren't counted.
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
  /// The client has given up a stream whose topic no node has served for the whole `patience`.
  static func unserved(_ topic: String?, for patience: Duration?, _ answer: ClientError) -> ClientError {
    ClientError(
      .topicMoved,
      "no node of the cluster has served \(topic.map { "topic \($0)" } ?? "the request")"
        + "\(patience.map { " for \($0)" } ?? ""); the broker's last answer: \(answer)",
      topic: topic, brokerCode: answer.brokerCode)
  }
}
