import ReactiveCore
import SluiceIO

@_exported import enum SluiceIO.SocketAddress

/// How a client stands with its brokers.
public enum ConnectionState: Hashable, Sendable {
  /// It is trying this server, for the so-manyth time since the connection was lost, each server counted; from 1.
  case connecting(SocketAddress, attempt: Int)
  /// It has a connection to this server.
  case connected(SocketAddress)
  /// It has none, and will try again after that time. The cause is why the last attempt, or the connection, failed.
  case waiting(Duration, attempt: Int, cause: ClientError)
  /// It is over. After this the publisher finishes.
  case closed(ClientError)
}

extension Client {
  /// How the client stands with its brokers, now and from now on, for those who care: subscribers and producers on it notice nothing of a
  /// lost connection but a pause.
  ///
  /// Values are delivered on the client's loop, the first one on the caller's thread. Finishes when the client is closed, for whatever
  /// reason; cancelling changes nothing for others.
  ///
  /// ```swift
  /// let states = client.connectionState.sink { state in
  ///   if case .waiting(_, _, let cause) = state { print("offline: \(cause)") }
  /// }
  /// ```
  public var connectionState: AnyPublisher<ConnectionState, Never> { core.states.eraseToAnyPublisher() }
}
