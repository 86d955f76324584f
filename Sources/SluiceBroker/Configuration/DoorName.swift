import SluiceIO

/// The protocol by which a client connects: the native one, or that of a gateway.
public enum DoorName: String, Hashable, Sendable, CaseIterable {
  case native
  case http
  case webSocket = "websocket"
  case mqtt

  /// The protocol of a client's address: the scheme of an internal address names its gateway.
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
