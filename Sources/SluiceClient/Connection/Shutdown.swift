import ReactiveCore
import SluiceIO

/// The orderly end of a client: every publication sends what it has accepted, the brokers confirm that they have read everything, and the
/// client closes; at a deadline it closes in any case.
///
/// ```
///  publications flush ──► PING to each broker ──► close
/// ```
// @unchecked: used on the client's loop only.
final class Shutdown: @unchecked Sendable {
  typealias Completion = Client.Completion<Void>

  private unowned let core: ClientCore
  private let time: Duration
  /// Publications that haven't flushed, or brokers that haven't answered.
  private var waiting = 0
  private var isConfirming = false
  private var timer: TimerToken?
  private var failure: ClientError?
  private var result: Result<Void, ClientError>?
  private var completions: [Completion] = []
  private var ends: [AnyCancellable] = []

  init(_ core: ClientCore, within time: Duration) {
    self.core = core
    self.time = time
  }

  /// Adds a caller.
  func join(_ completion: @escaping Completion) {
    if let result { return completion(result) }
    completions.append(completion)
  }

  func begin() {
    timer = core.loop.schedule(after: time) { [weak self] in self?.expired() }
    let publications = core.publications
    waiting = publications.count
    guard waiting > 0 else { return confirm() }
    let loop = core.loop
    for publication in publications {
      // A result may be known in this call, or come on another thread.
      let done: Completion = { [weak self] result in loop.execute { [weak self] in self?.flushed(result) } }
      if publication.isActive {
        publication.flush(confirmed: done)
      } else {
        waitForEnd(of: publication, done)
      }
    }
  }

  /// Waits for the end of a publication that ends already: the topic's end may follow its records.
  private func waitForEnd(of publication: Publication, _ done: @escaping Completion) {
    publication.states.sink { [weak publication] _ in
      done(publication?.failure.map { .failure($0) } ?? .success(()))
    } receiveValue: { _ in
    }.store(in: &ends)
  }

  private func flushed(_ outcome: Result<Void, ClientError>) {
    guard result == nil else { return }
    // A subject that was released ends its publication in this way.
    if case .failure(let error) = outcome, error.code != .closed { failure = failure ?? error }
    waiting -= 1
    if waiting == 0 { confirm() }
  }

  /// A broker that answers has read the frames in front of the PING: the last acknowledgements, commits and settlements.
  private func confirm() {
    let connections = core.connections
    isConfirming = true
    waiting = connections.count
    guard waiting > 0 else { return end() }
    for connection in connections {
      connection.streams.ask(
        Request(nil, timeout: nil) { [weak self] (answer: Result<Duration, ClientError>) in
          guard let self, result == nil else { return }
          if case .failure(let error) = answer { failure = failure ?? error }
          waiting -= 1
          if waiting == 0 { end() }
        })
    }
    core.flushSoon()
  }

  private func expired() {
    timer = nil
    guard !isConfirming else {
      failure =
        failure
        ?? ClientError(
          .flushTimeout,
          "the client was closed after \(time), before the broker had read everything; the last commits and settlements may be lost"
        )
      return end()
    }
    let topics = Set(core.publications.filter { !$0.isFlushed }.map(\.topic)).sorted()
    failure =
      failure
      ?? ClientError(
        .flushTimeout,
        "the client was closed after \(time) with records that the broker hasn't acknowledged, for \(topics.prefix(3).joined(separator: ", "))"
          + (topics.count > 3 ? " and \(topics.count - 3) more topics" : "")
          + "; they may be published or not", topic: topics.count == 1 ? topics[0] : nil)
    end()
  }

  private func end() {
    finish(failure.map { .failure($0) } ?? .success(()))
    core.close(.closedHere)
  }

  /// The client is closed: by this, or by something else meanwhile.
  func closed(_ error: ClientError) {
    finish(.failure(failure ?? error))
  }

  private func finish(_ result: Result<Void, ClientError>) {
    guard self.result == nil else { return }
    self.result = result
    core.loop.cancel(&timer)
    ends = []
    for completion in exchange(&completions, with: []) { completion(result) }
  }
}
