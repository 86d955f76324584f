import SluiceIO
import SluiceNATS

/// Queries the engine every few seconds for the copies of its streams and the state of its servers: the stream with leases each time, those of shards in
/// turn.
final class EngineWatch {
  private static let interval = Duration.seconds(5)

  private let api: JetStream
  private let loop: any EventLoop
  private let asksServers: Bool
  private let streams: () -> [String]
  private let found: (Finding) -> Void
  private var timer: TimerToken?
  private var isOver = false

  enum Finding {
    case info(Result<StreamInfo, NATSError>, stream: String)
    case servers([EngineServer])
  }

  /// - Parameters:
  ///   - asksServers: false if the nodes' account lacks the permission to query servers.
  ///   - streams: the streams of shards to query in the next round, one after another.
  ///   - found: called with each answer.
  init(
    _ api: JetStream, asksServers: Bool, on loop: any EventLoop, streams: @escaping () -> [String],
    _ found: @escaping (Finding) -> Void
  ) {
    var api = api
    api.timeout = .seconds(3)
    self.api = api
    self.asksServers = asksServers
    self.loop = loop
    self.streams = streams
    self.found = found
  }

  func start() { ask() }

  func stop() {
    isOver = true
    loop.cancel(&timer)
  }

  private func ask() { ask(ControlRecord.stream, then: streams()[...]) }

  private func ask(_ stream: String, then rest: ArraySlice<String>) {
    do throws(NATSError) {
      try api.streamInfo(stream) { [weak self] result in
        guard let self, !isOver else { return }
        found(.info(result, stream: stream))
        // A stream without a leader costs the timeout, so the others wait for the next round.
        if case .failure(let error) = result, error.code != .streamNotFound { return askServers() }
        guard let next = rest.first else { return askServers() }
        ask(next, then: rest.dropFirst())
      }
    } catch {
      found(.info(.failure(error), stream: stream))
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
