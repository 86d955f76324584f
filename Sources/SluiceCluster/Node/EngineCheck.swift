import SluiceIO
import SluiceNATS

/// Creates the stream with leases and the directory, and queries whether the servers keep what they store, until both have succeeded or the engine is
/// refused.
final class EngineCheck {
  enum Outcome {
    case ready
    /// It will be retried.
    case waiting(NATSError)
    case refused([String])
  }

  private let api: JetStream
  private let options: ClusterOptions
  private let loop: any EventLoop
  private let completion: (Outcome) -> Void
  private var timer: TimerToken?
  private var isOver = false

  private static let retry = Duration.milliseconds(500)

  init(
    _ api: JetStream, _ options: ClusterOptions, on loop: any EventLoop,
    _ completion: @escaping (Outcome) -> Void
  ) {
    var api = api
    api.timeout = .seconds(5)
    self.api = api
    self.options = options
    self.loop = loop
    self.completion = completion
  }

  func start() { createStream() }

  func stop() {
    isOver = true
    if let timer { loop.cancel(timer) }
    timer = nil
  }

  private var configuration: StreamConfiguration {
    var stream = StreamConfiguration(ControlRecord.stream, subjects: [ControlRecord.pattern])
    stream.replicas = options.replicas
    stream.maximumPerSubject = 1
    stream.allowsDirectReads = true
    stream.allowsTimeToLive = true
    stream.deleteMarkerTimeToLive = 60_000_000_000
    stream.duplicateWindow = 1_000_000_000
    return stream
  }

  private func createStream() {
    attempt { (done: @escaping JetStream.Completion<StreamInfo>) throws(NATSError) in
      try api.createStream(configuration, done)
    } then: { [self] result in
      switch result {
      case .success(let info): askServers(count: max(info.servers.count, 1))
      // An operator has changed its settings.
      case .failure(let error) where error.code == .streamExists: askServers(count: options.replicas)
      case .failure(let error): again(error)
      }
    }
  }

  private func askServers(count: Int) {
    guard !options.engineUnsafe else { return end(.ready) }
    attempt { (done: @escaping JetStream.Completion<[EngineServer]>) throws(NATSError) in
      try api.servers(patience: .milliseconds(500), done)
    } then: { [self] result in
      switch result {
      case .success(let servers):
        let objections = servers.flatMap { $0.objections() }
        guard objections.isEmpty else { return end(.refused(objections)) }
        // A server that is down at the moment must not prevent a new node from joining.
        guard servers.count * 2 > count else {
          return again(
            NATSError(
              .unavailable,
              "\(servers.count) of the engine's \(count) servers have said whether they sync what they acknowledge; start the others"
            ))
        }
        end(.ready)
      case .failure(let error) where error.code == .permissionDenied: end(.refused([error.description]))
      case .failure(let error): again(error)
      }
    }
  }

  /// Makes a request, and handles a failure to send it like any other failure.
  private func attempt<Value>(
    _ body: (@escaping JetStream.Completion<Value>) throws(NATSError) -> Void,
    then: @escaping (Result<Value, NATSError>) -> Void
  ) {
    do throws(NATSError) {
      try body { [weak self] result in
        if let self, !isOver { then(result) }
      }
    } catch {
      again(error)
    }
  }

  private func again(_ error: NATSError) {
    completion(.waiting(error))
    guard !isOver else { return }
    timer = loop.schedule(after: Self.retry) { [weak self] in
      self?.timer = nil
      self?.createStream()
    }
  }

  private func end(_ outcome: Outcome) {
    isOver = true
    completion(outcome)
  }
}
