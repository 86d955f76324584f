import SluiceIO
import SluiceTLS
import SluiceWire

// TLS as a layer over the client's network, its errors, and where credentials may be sent.
extension ClientCore {
  /// Adds TLS to a network if one of the servers uses it.
  ///
  /// - Returns: the network for the servers, the network for the nodes of a cluster, and why TLS can't be set up.
  static func secured(
    _ network: any Network, for servers: [SocketAddress], _ options: TLSClientOptions
  ) -> (any Network, any Network, ClientError?) {
    guard servers.contains(where: \.hasTLS) else { return (network, network, nil) }
    do throws(TLSSetupError) {
      let secured = TLSNetwork(over: network, client: try TLSClient(options))
      guard options.serverName != nil else { return (secured, secured, nil) }
      // The name is that of the servers. A node's certificate is for the host in its own address.
      var ofNodes = options
      ofNodes.serverName = nil
      return (secured, TLSNetwork(over: network, client: try TLSClient(ofNodes)), nil)
    } catch {
      return (network, network, ClientError(.tlsFailed, "TLS can't be set up: \(error)"))
    }
  }

  /// Returns the address of a node that the broker has named, with TLS if the broker's own has TLS. Nil if the client must not connect to it: its security is
  /// less than the broker's, or it is the broker's own address.
  func nodeAddress(_ text: String) -> SocketAddress? {
    guard let named = try? SocketAddress(parsing: text) else { return nil }
    let node: SocketAddress
    switch named {
    case .host(let host, let port): node = address.hasTLS ? .tls(host, port: port) : named
    case .tls: node = named
    case .unix, .door: return nil
    }
    if node.hasTLS, !address.hasTLS { return nil }
    return node == address || node.isUnencrypted && !address.isUnencrypted ? nil : node
  }
}

extension ClientError {
  init(tls error: IOError) {
    self.init(error.isCertificateRefusal ? .certificateRefused : .tlsFailed, "\(error)")
  }

  private static func notSluice(_ message: String) -> ClientError {
    ClientError(.notSluice, message, brokerCode: ErrorCode.notSluice.rawValue)
  }

  /// The server uses TLS, and the client connected without it.
  static func secureServer(_ address: SocketAddress) -> ClientError {
    guard case .host(let host, let port) = address else {
      return .notSluice("\(address) answers with TLS; check the address")
    }
    return .notSluice("\(address) answers with TLS; connect to \(SocketAddress.tls(host, port: port))")
  }

  /// The server speaks HTTP: it is a gateway's or the admin listener's address.
  static func httpServer(_ address: SocketAddress) -> ClientError {
    .notSluice(
      "\(address) answers with HTTP; connect to the broker's address for its own protocol, on port 7420 unless it was given another"
    )
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

  /// Whether this may be an answer of HTTP. No frame begins with these bytes either.
  var beginsLikeHTTP: Bool { unsafe starts(with: "HTTP/".utf8) }
}

extension SocketAddress {
  /// Whether connections to it leave the machine without TLS, so that credentials could be read on the way.
  var isUnencrypted: Bool { !hasTLS && !isOnThisMachine }
}
