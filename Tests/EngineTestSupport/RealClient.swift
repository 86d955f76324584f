import SluiceIO
import SluiceNATS
import Synchronization
import TestSupport

/// A client of real servers on its own loop, for a test that waits for each step.
public final class RealClient: Sendable {
  public let client: NATSClient
  public let loop: EpollLoop
  /// The servers run as long as their client exists.
  private let servers: [EngineProcess]
  private let log = Mutex<[String]>([])

  public init(
    _ servers: [EngineProcess], addresses: [NATSAddress]? = nil, requiresTLS: Bool = false,
    _ change: (inout NATSOptions) -> Void = { _ in }
  ) throws {
    var options = NATSOptions()
    options.allowsPlaintextCredentials = true
    change(&options)
    self.servers = servers
    loop = try EpollLoop.start(name: "nats")
    client = try NATSClient(
      addresses ?? servers.map { NATSAddress($0.host, requiresTLS: requiresTLS) }, options: options,
      network: SocketNetwork(), on: loop)
    loop.execute { [self] in
      client.start { [weak self] event in self?.log.withLock { $0.append(text(event)) } }
    }
  }

  deinit {
    let client = client
    loop.execute { client.close() }
    loop.stop()
    loop.join()
  }

  public var events: [String] { log.withLock { $0 } }

  /// Waits until the client is connected.
  public func open() throws -> Self {
    try eventually("a connection: \(events)") { events.last?.hasPrefix("connected") == true }
    return self
  }

  /// Runs `body` on the loop.
  public func perform(_ body: @escaping @Sendable (NATSClient) -> Void) {
    let client = client
    loop.execute { body(client) }
  }

  /// Runs `body` on the loop, and waits up to a minute for its result: on a machine that runs many tests an engine may not answer for seconds.
  public func result<Value: Sendable>(
    _ body:
      @escaping @Sendable (JetStream, @escaping (Result<Value, NATSError>) -> Void) throws -> Void
  ) throws -> Result<Value, NATSError> {
    try result(within: .seconds(60), body)
  }

  private func result<Value: Sendable>(
    within timeout: Duration,
    _ body:
      @escaping @Sendable (JetStream, @escaping (Result<Value, NATSError>) -> Void) throws -> Void
  ) throws -> Result<Value, NATSError> {
    let box = Mutex<Result<Value, NATSError>?>(nil)
    let shared = Shared(box)
    perform { client in
      do {
        var api = JetStream(client)
        api.timeout = timeout
        try body(api) { result in shared.box.withLock { $0 = result } }
      } catch {
        shared.box.withLock { $0 = .failure(error as! NATSError) }
      }
    }
    try eventually("an answer: \(events)", every: 0.001) { shared.box.withLock { $0 != nil } }
    return shared.box.withLock { $0! }
  }

  /// The same, for a request that must succeed.
  public func get<Value: Sendable>(
    _ body:
      @escaping @Sendable (JetStream, @escaping (Result<Value, NATSError>) -> Void) throws -> Void
  ) throws -> Value {
    try result(body).get()
  }

  /// The same, retried while the engine has no leader.
  public func retry<Value: Sendable>(
    _ body:
      @escaping @Sendable (JetStream, @escaping (Result<Value, NATSError>) -> Void) throws -> Void
  ) throws -> Value {
    let deadline = Deadline(in: Deadline.patience)
    while true {
      switch try result(within: .seconds(5), body) {
      case .success(let value): return value
      case .failure(let error):
        guard !deadline.isOver else { throw error }
        pause(0.05)
      }
    }
  }

  private final class Shared<Value: Sendable>: Sendable {
    let box: Mutex<Value>

    init(_ box: consuming Mutex<Value>) {
      self.box = box
    }
  }
}

/// A message to store.
public func message(
  _ subject: String, _ payload: String = "", _ change: (inout NATSHeaders) throws -> Void = { _ in }
) -> NATSMessage {
  var headers = NATSHeaders()
  try! change(&headers)
  return NATSMessage(subject: subject, headers: headers, payload: Array(payload.utf8))
}

public func text(_ event: NATSClient.Event) -> String {
  switch event {
  case .connected(let info): "connected to \(info.serverName)"
  case .interrupted(let error): "interrupted: \(error.code)"
  case .lameDuck(let server): "lame duck: \(server)"
  case .closed(let error): "closed: \(error.code)"
  }
}
