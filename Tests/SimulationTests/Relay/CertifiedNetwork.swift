import Glibc
import SluiceIO

/// A network whose `tls://` connections carry the certificate of one program, without cryptography. The peer learns its name, and which authority has
/// signed it: one for nodes, as for `n0`, or one for clients, as for `n0 as a client`.
final class CertifiedNetwork: Network {
  /// Names of certificates that an authority has signed.
  static let names = ["n0", "n1", "n2", "n0 as a client", "mallory"]

  private let beneath: any Network
  private let name: String

  /// - Parameter name: the name that the peer of `tls://` connections sees.
  init(over beneath: any Network, as name: String) {
    self.beneath = beneath
    self.name = name
  }

  private static func address(_ host: String, _ port: UInt16, of name: String) -> SocketAddress {
    .host("\(host) by \(name)", port: port)
  }

  func listen(
    at address: SocketAddress, group: LoopGroup,
    accepted: @escaping @Sendable (any ByteStream, any EventLoop) -> Void
  ) throws -> any Listener {
    guard case .tls(let host, let port) = address else {
      return try beneath.listen(at: address, group: group, accepted: accepted)
    }
    let listeners = try Self.names.map { name in
      try beneath.listen(at: Self.address(host, port, of: name), group: group) { stream, loop in
        accepted(CertifiedStream(stream, of: name), loop)
      }
    }
    return CertifiedListener(address: address, listeners)
  }

  func connect(
    to address: SocketAddress, on loop: any EventLoop,
    completion: @escaping (Result<any ByteStream, IOError>) -> Void
  ) -> any ConnectionAttempt {
    guard case .tls(let host, let port) = address else {
      return beneath.connect(to: address, on: loop, completion: completion)
    }
    return beneath.connect(to: Self.address(host, port, of: name), on: loop, completion: completion)
  }
}

private final class CertifiedListener: Listener {
  let address: SocketAddress
  private let listeners: [any Listener]

  init(address: SocketAddress, _ listeners: [any Listener]) {
    self.address = address
    self.listeners = listeners
  }

  func close() { for listener in listeners { listener.close() } }
}

private final class CertifiedStream: ByteStream {
  private let beneath: any ByteStream
  let security: StreamSecurity?

  init(_ beneath: any ByteStream, of name: String) {
    self.beneath = beneath
    let isNode = ["n0", "n1", "n2"].contains(name)
    security = StreamSecurity(
      version: "TLSv1.3", cipher: "none", peerName: isNode ? nil : String(name.prefix { $0 != " " }),
      nodeName: isNode ? name : nil)
  }

  var peer: SocketAddress { beneath.peer }
  func start(_ handler: any ByteStreamHandler) { beneath.start(handler) }
  func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult { beneath.read(into: buffer) }
  func write(_ vectors: UnsafeBufferPointer<iovec>) -> WriteResult { beneath.write(vectors) }
  var readsPaused: Bool {
    get { beneath.readsPaused }
    set { beneath.readsPaused = newValue }
  }
  func close() { beneath.close() }
  func abort() { beneath.abort() }
}
