import SluiceIO
import SluiceTLS

// TLS as a layer over the client's network, its errors, and where credentials may be sent.
extension ClientCore {
  /// Adds TLS to a network if one of the servers uses it.
  ///
  /// - Returns: the network, and why TLS can't be set up.
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

  /// The server uses TLS, and the client connected without it.
  static func secureServer(_ address: SocketAddress) -> ClientError {
    guard case .host(let host, let port) = address else {
      return ClientError(.notSluice, "\(address) answers with TLS; check the address")
    }
    return ClientError(
      .notSluice, "\(address) answers with TLS; connect to \(SocketAddress.tls(host, port: port))")
  }

  static func unencrypted(_ address: SocketAddress) -> ClientError {
    ClientError(
      .insecureConnection,
      "the client's credentials weren't sent to \(address), since the connection isn't encrypted; use tls://, or allow it explicitly"
    )
  }
}

extension UnsafeMutableRawBufferPointer {
  /// Whether this may be a TLS alert, which a server with TLS sends to a client without it. No frame begins with these bytes: it would be longer
  /// than any in a handshake.
  var beginsLikeTLS: Bool {
    unsafe count >= 4 && self[0] == 0x15 && self[1] == 3 && self[2] <= 4 && self[3] == 0
  }
}

extension SocketAddress {
  /// Whether connections to it leave the machine without TLS, so that credentials could be read on the way.
  var isUnencrypted: Bool { !hasTLS && !isOnThisMachine }
}
