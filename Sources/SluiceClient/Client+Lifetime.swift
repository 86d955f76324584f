import ReactiveCore
import SluiceIO

// How long a client lives: for a scope, for the time of a service, or until it is shut down.
extension Client {
  /// Publishes what was accepted, and closes the client. Returns when the broker has acknowledged every record, and has read every commit and
  /// settlement; at the latest after `time`.
  ///
  /// Records that are published meanwhile may be lost: stop producers before. Subscriptions and unanswered requests end with
  /// ``ClientError/Code/closed``, as with ``close()``. A second call waits for the first one, whatever its own time.
  ///
  /// - Parameter time: how long the client waits, through lost connections. Default: 10 s.
  /// - Throws: ``ClientError/Code/flushTimeout`` when the time was too short; why a publication has ended early; ``ClientError/Code/cancelled`` when the task
  ///   is cancelled, and the client then closes at once.
  public func shutdown(within time: Duration = .seconds(10)) async throws(ClientError) {
    let (reply, core) = (Reply<Void>(), core)
    shutdown(within: time, completion: reply.complete)
    try await reply.value(onCancel: { core.post(.close(.closedHere)) })
  }

  /// As the `async` form. The completion is called once, on the client's loop.
  public func shutdown(within time: Duration = .seconds(10), completion: @escaping Completion<Void>) {
    core.post(.shutdown(within: time, completion))
  }

  /// Runs for as long as the client is used: returns when the program closes it, or shuts it down. A task that is cancelled shuts it down first.
  ///
  /// This is the function that swift-service-lifecycle asks of a `Service`, so one line makes a client a service of a group:
  /// `extension Client: @retroactive Service {}`.
  ///
  /// - Throws: the client's failure if it gave up its broker; as ``shutdown(within:)`` after a cancellation.
  public func run() async throws {
    let ended = Reply<Void>()
    let watch = core.states.sink { _ in
      ended.complete(.success(()))
    } receiveValue: { _ in
    }
    defer { watch.cancel() }
    do {
      try await ended.value()
    } catch {
      return try await shutdownUncancelled()
    }
    if let failure, failure.code != .closed { throw failure }
  }

  /// Connects to a broker, calls `body` with the client, and shuts the client down behind it, whether it returns or throws.
  ///
  /// ```swift
  /// try await Client.withConnection(to: "127.0.0.1:7420") { client in
  ///   client.subject("greetings").send("hello")
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - address: as in ``connect(to:options:)-(String,_)``.
  ///   - options: the client's options.
  ///   - isolation: the actor on which `body` runs; by default the caller's.
  ///   - body: uses the client, which is closed afterwards.
  /// - Throws: what `body` throws; why the client can't connect; and as ``shutdown(within:)``.
  @discardableResult
  public static func withConnection<Result>(
    to address: String, options: ClientOptions = ClientOptions(),
    isolation: isolated (any Actor)? = #isolation, _ body: (Client) async throws -> Result
  ) async throws -> Result {
    try await withConnection(to: [address], options: options, body)
  }

  /// As the other form, with several servers: see ``connect(to:options:)-([String],_)``.
  @discardableResult
  public static func withConnection<Result>(
    to addresses: [String], options: ClientOptions = ClientOptions(),
    isolation: isolated (any Actor)? = #isolation, _ body: (Client) async throws -> Result
  ) async throws -> Result {
    let client = try await connect(to: addresses, options: options)
    let result: Result
    do {
      result = try await body(client)
    } catch {
      // The error of `body` is the one to know.
      try? await client.shutdownUncancelled()
      throw error
    }
    try await client.shutdownUncancelled()
    return result
  }

  /// Shuts down also when the task is cancelled: in a task of its own.
  private func shutdownUncancelled() async throws {
    try await Task { try await shutdown() }.value
  }
}
