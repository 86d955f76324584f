import SluiceIO
import SluiceWire

/// A request to the broker, and the completion that gets its answer.
// @unchecked: made anywhere, used on the loop only from then on.
final class Request: @unchecked Sendable {
  /// The request's frame; nil for PING, which has no stream.
  let frame: (any Frame)?
  /// The longest time until the answer, from when the loop starts the request; nil for no limit.
  private let timeout: Duration?
  private var completion: (@Sendable (Result<any Sendable, ClientError>) -> Void)?
  private let isAnswer: @Sendable (any Sendable) -> Bool
  private var timer: TimerToken?
  private var isStarted = false
  var move: Move?

  /// - Parameter completion: called on the loop, once, with the answer's frame, or with the round-trip time of a PING.
  init<Answer: Sendable>(
    _ frame: (any Frame)?, timeout: Duration?,
    _ completion: @escaping @Sendable (Result<Answer, ClientError>) -> Void
  ) {
    self.frame = frame
    self.timeout = timeout
    self.completion = { result in
      completion(
        result.map { answer in
          guard let answer = answer as? Answer else { preconditionFailure("isAnswered(by:) was not asked") }
          return answer
        })
    }
    isAnswer = { $0 is Answer }
  }

  /// Whether a frame of this kind answers the request.
  func isAnswered(by answer: any Sendable) -> Bool { isAnswer(answer) }

  /// The completion was called.
  var isOver: Bool { completion == nil }

  var topic: String? { frame?.names.first { $0.kind == .topic }?.text }

  /// Whether repeating the request has the same effect as making it once.
  var isRepeatable: Bool {
    switch frame {
    // A moved cursor may have advanced since.
    case is TopicDelete, is CursorMove, is CursorDelete: false
    // Records published since would be trimmed, and another client may have changed the settings.
    case is TopicSet, is TopicTrim, is ConnectionClose: false
    // The groups would already exist.
    case is StateRestore: false
    // The next connection has credentials of its own.
    case is Authenticate: false
    default: true
    }
  }

  /// Starts the timeout.
  func start(_ core: ClientCore) {
    guard let timeout, !isStarted else { return }
    isStarted = true
    timer = core.loop.schedule(after: timeout) { [weak self, weak core] in
      guard let self, let core else { return }
      timer = nil
      core.stopAwaiting(self)
      complete(
        .failure(
          ClientError(
            .requestTimeout,
            "the request wasn't answered within \(timeout); whether it was carried out isn't known",
            topic: topic)),
        core.loop)
    }
  }

  func complete(_ result: Result<any Sendable, ClientError>, _ loop: any EventLoop) {
    loop.cancel(&timer)
    completion.take()?(result)
  }

  /// The failure of a request that lost its connection before the answer and can't be repeated.
  static func answerLost(_ error: ClientError, topic: String?) -> ClientError {
    ClientError(
      error.code,
      "the connection was lost before the answer came, so it isn't known whether the request was carried out (\(error))",
      topic: topic)
  }
}
