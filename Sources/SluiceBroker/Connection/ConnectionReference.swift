import SluiceIO

/// The way back to a connection for what ends elsewhere: a commit, an answer of the store, the loss of a cursor to another client.
///
/// A connection that has closed isn't called. A weak reference would do the same, but from the first one on the runtime counts every reference
/// to the connection by its slow path, several for each batch.
// @unchecked: `connection` belongs to `loop`.
final class ConnectionReference: @unchecked Sendable {
  private let loop: any EventLoop
  /// Nil when the connection has closed. Its context keeps it until then, and a loop that has let go of its context runs no jobs.
  private unowned var connection: Connection?

  init(_ connection: Connection, on loop: any EventLoop) {
    self.connection = connection
    self.loop = loop
  }

  /// Calls `body` on the connection's loop, unless the connection has closed by then. From any thread.
  func execute(_ body: @escaping @Sendable (Connection) -> Void) {
    loop.execute { [self] in call(body) }
  }

  /// Calls `body` on the connection's loop when the time has passed, unless the connection has closed by then. On the loop.
  func schedule(after delay: Duration, _ body: @escaping @Sendable (Connection) -> Void) {
    _ = loop.schedule(after: delay) { [self] in call(body) }
  }

  private func call(_ body: (Connection) -> Void) {
    if let connection { body(connection) }
  }

  /// The connection has closed. On the loop.
  func clear() {
    connection = nil
  }
}
