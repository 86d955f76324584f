import SluiceIO

/// What clients come by: the native protocol, or one of the other protocols that a program serves.
public enum DoorName: String, Hashable, Sendable, CaseIterable {
  case native
  case http
  case webSocket = "websocket"
  case mqtt

  /// By the address of a client, which has the scheme of its door.
  public init(_ peer: SocketAddress) {
    self =
      switch peer {
      case .door(.http, _, _, _): .http
      case .door(.webSocket, _, _, _): .webSocket
      case .door(.mqtt, _, _, _): .mqtt
      case .host, .tls, .unix: .native
      }
  }
}
