import SluiceIO
import SluiceTLS

// What TLS comes to in the client: a layer over its network, and errors.
extension ClientCore {
  /// The network for some servers: with TLS over it if any of them has it.
  ///
  /// - Returns: the network, and why TLS can't be used over it.
  static func secured(
    _ network: any Network, for servers: [SocketAddress], _ options: TLSClientOptions
  ) -> (any Network, ClientError?) {
    guard servers.contains(where: { if case .tls = $0 { true } else { false } }) else {
      return (network, nil)
    }
    do throws(TLSSetupError) {
      return (TLSNetwork(over: network, client: try TLSClient(options)), nil)
    } catch {
      return (network, ClientError(.tlsFailed, "TLS can't be set up: \(error)"))
    }
  }
}

extension ClientError {
  init(tls error: IOError) {
    self.init(error.isCertificateRefusal ? .certificateRefused : .tlsFailed, "\(error)")
  }

  /// Who was connected to without TLS has it.
  static func secureServer(_ address: SocketAddress) -> ClientError {
    guard case .host(let host, let port) = address else {
      return ClientError(.notSluice, "\(address) answers with TLS; check the address")
    }
    return ClientError(
      .notSluice, "\(address) answers with TLS; connect to \(SocketAddress.tls(host, port: port))")
  }
}

extension UnsafeMutableRawBufferPointer {
  /// Whether this may be TLS's alert: what a server with TLS says to those who begin without it. No frame begins so, as it would be longer than
  /// any in a handshake.
  var beginsLikeTLS: Bool {
    unsafe count >= 4 && self[0] == 0x15 && self[1] == 3 && self[2] <= 4 && self[3] == 0
  }
}

extension SocketAddress {
  /// Whether what is sent there may be read by others: it leaves the machine without TLS.
  var isReadByOthers: Bool { !hasTLS && !isOnThisMachine }
}

extension ClientError {
  static func readByOthers(at address: SocketAddress) -> ClientError {
    ClientError(
      .insecureConnection,
      "the client's credentials weren't sent to \(address), since others on the way could read them; use tls://, or allow it explicitly"
    )
  }
}
