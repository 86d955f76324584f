import SluiceIO

/// The names of the protocol over TLS (ALPN, RFC 7301). A client that sends names must include one of them, so that a connection to the port of
/// another service fails.
///
/// Its instances are never released: OpenSSL's callbacks refer to them.
final class ApplicationProtocol: Hashable, Sendable {
  static let sluice = ApplicationProtocol(TLSContext.applicationProtocolName)
  static let http = ApplicationProtocol("http/1.1", "http/1.0")
  static let mqtt = ApplicationProtocol("mqtt")

  /// The best one first, each in no more bytes than ALPN has for it, which is 255.
  private let names: [[UInt8]]

  private init(_ names: String...) {
    self.names = names.map { Array($0.utf8) }
  }

  /// The protocol of an address' clients; nil for an address without TLS.
  static func of(_ address: SocketAddress) -> ApplicationProtocol? {
    switch address {
    case .tls: sluice
    case .door(let door, _, _, isSecure: true):
      switch door {
      case .webSocket, .http: http
      case .mqtt: mqtt
      }
    case .host, .unix, .door: nil
    }
  }

  /// The position of the best name in a list of names, each after its length; nil if there is none.
  func place(in list: UnsafeBufferPointer<UInt8>) -> Range<Int>? {
    for name in names {
      var next = 0
      while next < list.count {
        let start = next + 1
        next = unsafe start + Int(list[next])
        if next <= list.count, unsafe list[start..<next].elementsEqual(name) { return start..<next }
      }
    }
    return nil
  }

  static func == (left: ApplicationProtocol, right: ApplicationProtocol) -> Bool { left === right }

  func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
