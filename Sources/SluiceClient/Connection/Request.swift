import SluiceIO
import SluiceWire

/// A question to the broker, and who waits for the answer.
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
  }

  enum Answer: Sendable {
    case topics(Topics)
    case info(TopicInfo)
    case cursors(Cursors)
    case done
    case authenticated(Authenticated)
    /// How long the round trip took.
    case pong(Duration)
  }

  let question: Question
  /// How long the answer may take, from when the loop hears of the request; nil for as long as it takes.
  private let timeout: Duration?
  private var completion: Completion?
  private var timer: TimerToken?
  private var isStarted = false
  /// While it waits for a connection.
  var parking: UInt64?

  /// - Parameter completion: called on the loop, once.
  init(_ question: Question, timeout: Duration?, _ completion: @escaping Completion) {
    self.question = question
    self.timeout = timeout
    self.completion = completion
  }

  /// Nobody waits any more.
  var isOver: Bool { completion == nil }

  /// The topic that it is about.
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

  /// Whether asking twice does the same as asking once.
  var isRepeatable: Bool {
    switch question {
    // A cursor that was moved may have gone on since.
    case .delete, .moveCursor, .deleteCursor: false
    // The next connection has credentials of its own.
    case .authenticate: false
    case .topics, .show, .create, .connect, .disconnect, .cursors, .ping: true
    }
  }

  /// Its time begins to count.
  func start(_ core: ClientCore) {
    guard let timeout, !isStarted else { return }
    isStarted = true
    timer = core.loop.schedule(after: timeout) { [weak self, weak core] in
      guard let self, let core else { return }
      timer = nil
      core.unpark(&parking)
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

  /// Its connection was lost before the answer came, and it can't be asked again.
  static func answerLost(_ error: ClientError, topic: String?) -> ClientError {
    ClientError(
      error.code,
      "the connection was lost before the answer came, so it isn't known whether the request was carried out (\(error))",
      topic: topic)
  }
}
