import SluiceHTTP
import SluiceIO
import Synchronization

/// A client that the broker refused before its first request, because there are too many connections. It is answered once the head of its request has
/// arrived, since the answer to HEAD has no content.
///
/// The connection to the broker has already ended, so the client has a short time to send its request. At most ``limit`` clients wait across all loops;
/// further ones are answered at once, without content unless their request has already arrived.
///
/// On its loop only. The client's stream retains it.
final class HTTPRefusal: ByteStreamHandler {
  /// Less than ``BrokerLimits/closingConnections``, the number of connections that the broker lets wait for their end, so that waiting clients don't cause
  /// other clients' connections to be aborted.
  static let limit = 64
  /// How long the client has for its request, and to read the answer.
  private static let patience = Duration.seconds(10)
  /// Bytes to read at a time.
  private static let chunk = 4096

  /// Counts waiting clients across all loops. Usable from any thread.
  final class Waiting: Sendable {
    private let number = Atomic(0)

    var count: Int { number.load(ordering: .relaxed) }

    fileprivate func add(_ change: Int) -> Int { number.add(change, ordering: .relaxed).newValue }
  }

  private let transport: any ByteStream
  private var session: HTTPServerSession
  private let problem: HTTPProblem
  private let waiting: Waiting
  private let loop: any EventLoop
  private var timer: TimerToken?
  private var isAnswered = false
  private var hasEnded = false

  /// - Parameters:
  ///   - session: of a client from which nothing was read yet.
  ///   - problem: the answer.
  init(
    _ transport: any ByteStream, _ session: HTTPServerSession, _ problem: HTTPProblem, _ waiting: Waiting,
    on loop: any EventLoop
  ) {
    self.transport = transport
    self.session = session
    self.problem = problem
    self.waiting = waiting
    self.loop = loop
  }

  /// Waits for the request.
  func begin() {
    let isTooMany = waiting.add(1) > Self.limit
    timer = loop.schedule(after: Self.patience) { [weak self] in
      self?.timer = nil
      self?.timeIsOver()
    }
    transport.start(self)
    guard isTooMany else { return }
    streamReadable()
    refuse(problem)
    write()
  }

  private func timeIsOver() {
    refuse(problem)
    write()
    end()
  }

  func streamReadable() {
    guard !hasEnded else { return }
    unsafe withUnsafeTemporaryAllocation(byteCount: Self.chunk, alignment: 16) { buffer in
      switch unsafe transport.read(into: buffer) {
      case .wouldBlock: break
      case .end, .failed: end()
      case .bytes(let count):
        guard !isAnswered else { break }
        unsafe session.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      }
    }
    take()
    write()
  }

  private func take() {
    while !isAnswered, let event = session.next(at: loop.wallClock) {
      switch event {
      // A browser's preflight request, which the session has answered.
      case .waits where !session.isWithinRequest: break
      case .waits, .request: refuse(problem)
      case .problem(let problem): refuse(problem)
      }
    }
  }

  private func refuse(_ problem: HTTPProblem) {
    guard !isAnswered, !hasEnded else { return }
    isAnswered = true
    // If the request arrived completely: no other one follows.
    if !session.isReading { session.end() }
    session.refuse(problem, problem.text, at: loop.wallClock)
  }

  func streamWritable() { write() }

  private func write() {
    guard !hasEnded else { return }
    let goesOn = unsafe session.write {
      guard case .wrote(let count) = unsafe transport.write($0) else { return nil }
      return count
    }
    if !goesOn || session.isClosing && session.output.isEmpty { end() }
  }

  func streamFailed(_ error: IOError) { end() }

  /// Closes the client's stream once its output was sent.
  private func end() {
    guard !hasEnded else { return }
    hasEnded = true
    loop.cancel(&timer)
    _ = waiting.add(-1)
    transport.close()
  }
}
