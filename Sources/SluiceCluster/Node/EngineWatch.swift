import SluiceIO
import SluiceNATS

/// Asks the engine every few seconds whether all copies of what it stores are there, and what its servers say of themselves.
final class EngineWatch {
  private static let interval = Duration.seconds(5)

  private let api: JetStream
  private let loop: any EventLoop
  private let asksServers: Bool
  private let found: (Finding) -> Void
  private var timer: TimerToken?
  private var isOver = false

  enum Finding {
    case info(Result<StreamInfo, NATSError>)
    case servers([EngineServer])
  }

  /// - Parameters:
  ///   - asksServers: false where the account of the nodes may not ask them.
  ///   - found: called with each answer.
  init(_ api: JetStream, asksServers: Bool, on loop: any EventLoop, _ found: @escaping (Finding) -> Void) {
    var api = api
    api.timeout = .seconds(3)
    self.api = api
    self.asksServers = asksServers
    self.loop = loop
    self.found = found
  }

  func start() { ask() }

  func stop() {
    isOver = true
    loop.cancel(&timer)
  }

  private func ask() {
    do throws(NATSError) {
      try api.streamInfo(ControlRecord.stream) { [weak self] result in
        guard let self, !isOver else { return }
        found(.info(result))
        askServers()
      }
    } catch {
      found(.info(.failure(error)))
      askLater()
    }
  }

  private func askServers() {
    guard asksServers else { return askLater() }
    do throws(NATSError) {
      try api.servers(patience: .milliseconds(500)) { [weak self] result in
        guard let self, !isOver else { return }
        if case .success(let servers) = result { found(.servers(servers)) }
        askLater()
      }
    } catch {
      askLater()
    }
  }

  private func askLater() {
    timer = loop.schedule(after: Self.interval) { [weak self] in
      self?.timer = nil
      self?.ask()
    }
  }
}
