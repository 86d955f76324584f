import SluiceIO
import SluiceWire

/// A request to the broker, and the completion that gets its answer.
// @unchecked: made anywhere, used on the loop only from then on.
final class Request: @unchecked Sendable {
  typealias Completion = @Sendable (Result<Answer, ClientError>) -> Void

  enum Question: Sendable {
    case topics(TopicList)
    case show(TopicShow)
    case create(TopicCreate)
    case delete(TopicDelete)
    case connect(TopicConnect)
    case disconnect(TopicDisconnect)
    case cursors(CursorList)
    case moveCursor(CursorMove)
    case deleteCursor(CursorDelete)
    case authenticate(Authenticate)
    case ping

    /// The request's frame; nil for PING, which has no stream.
    var frame: (any Frame)? {
      switch self {
      case .topics(let frame): frame
      case .show(let frame): frame
      case .create(let frame): frame
      case .delete(let frame): frame
      case .connect(let frame): frame
      case .disconnect(let frame): frame
      case .cursors(let frame): frame
      case .moveCursor(let frame): frame
      case .deleteCursor(let frame): frame
      case .authenticate(let frame): frame
      case .ping: nil
      }
    }
  }

  enum Answer: Sendable {
    case topics(Topics)
    case info(TopicInfo)
    case cursors(Cursors)
    case done
    case authenticated(Authenticated)
    /// The round-trip time.
    case pong(Duration)
  }

  let question: Question
  /// The longest time until the answer, from when the loop starts the request; nil for no limit.
  private let timeout: Duration?
  private var completion: Completion?
  private var timer: TimerToken?
  private var isStarted = false

  /// - Parameter completion: called on the loop, once.
  init(_ question: Question, timeout: Duration?, _ completion: @escaping Completion) {
    self.question = question
    self.timeout = timeout
    self.completion = completion
  }

  /// The completion was called.
  var isOver: Bool { completion == nil }

  var topic: String? {
    switch question {
    case .show(let frame): frame.topic
    case .create(let frame): frame.topic
    case .delete(let frame): frame.topic
    case .connect(let frame): frame.topic
    case .disconnect(let frame): frame.topic
    case .cursors(let frame): frame.topic
    case .moveCursor(let frame): frame.topic
    case .deleteCursor(let frame): frame.topic
    case .topics, .authenticate, .ping: nil
    }
  }

  /// Whether repeating the request has the same effect as making it once.
  var isRepeatable: Bool {
    switch question {
    // A moved cursor may have advanced since.
    case .delete, .moveCursor, .deleteCursor: false
    // The next connection has credentials of its own.
    case .authenticate: false
    case .topics, .show, .create, .connect, .disconnect, .cursors, .ping: true
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

  func complete(_ result: Result<Answer, ClientError>, _ loop: any EventLoop) {
    if let timer { loop.cancel(timer) }
    timer = nil
    let completion = completion
    self.completion = nil
    completion?(result)
  }

  /// The failure of a request that lost its connection before the answer and can't be repeated.
  static func answerLost(_ error: ClientError, topic: String?) -> ClientError {
    ClientError(
      error.code,
      "the connection was lost before the answer came, so it isn't known whether the request was carried out (\(error))",
      topic: topic)
  }
}
