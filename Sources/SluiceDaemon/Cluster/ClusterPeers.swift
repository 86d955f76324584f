import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceTLS
import Synchronization

/// How this node and the other nodes of its cluster authenticate each other: by certificates of an authority that signs only those of nodes.
///
/// May be used from any thread.
final class ClusterPeers: Sendable {
  private let client: TLSClient
  private let names: Mutex<PeerNames>

  /// - Parameter server: this node's side of TLS for clients and other nodes.
  /// - Throws: `UsageError` for files that can't be used, and for a certificate that other nodes wouldn't accept as a node's.
  init(_ settings: DaemonSettings, _ server: TLSServer) throws(UsageError) {
    if let objection = Self.objection(settings, server) { throw objection }
    do throws(TLSSetupError) {
      client = try TLSClient(Self.options(settings, server))
    } catch {
      throw UsageError("--cluster-peer-ca: \(error)")
    }
    names = Mutex(PeerNames(settings.cluster.peers))
  }

  /// The configuration for the broker.
  var security: PeerSecurity {
    PeerSecurity(network: TLSNetwork(over: SocketNetwork(), client: client)) { [self] security in
      security.nodeName.map { name in names.withLock { $0.contains(name) } } ?? false
    }
  }

  /// Reads the files again. ``security`` uses them for new connections.
  ///
  /// - Parameter settings: settings with the new names of nodes; nil for the same names.
  /// - Throws: `UsageError` as at the start; nothing has changed then.
  func reload(_ settings: DaemonSettings?, _ server: TLSServer) throws(UsageError) {
    if let settings, let objection = Self.objection(settings, server) { throw objection }
    do throws(TLSSetupError) {
      try client.reload(settings.map { Self.options($0, server) })
    } catch {
      throw UsageError("--cluster-peer-ca: \(error)")
    }
    if let settings { names.withLock { $0 = PeerNames(settings.cluster.peers) } }
  }

  /// Options for links: the node presents the same certificate as to clients, and trusts only other nodes.
  private static func options(_ settings: DaemonSettings, _ server: TLSServer) -> TLSClientOptions {
    var options = TLSClientOptions()
    options.authorities = settings.cluster.peerAuthorities
    options.certificate = server.options.certificate
    options.key = server.options.key
    return options
  }

  /// The reason why other nodes wouldn't accept this node's certificate; nil if they accept it.
  private static func objection(_ settings: DaemonSettings, _ server: TLSServer) -> UsageError? {
    let file = server.options.certificate
    if let objection = server.nodeObjection {
      return UsageError(
        "--cluster-peer-ca: other nodes would refuse the certificate in '\(file)': \(objection). It must be valid for servers and clients, and signed by an "
          + "authority that signs only nodes' certificates (SLUICE_CERTS_NODES=NAME scripts/certs.sh DIR makes one for tests)"
      )
    }
    guard let name = server.name, PeerNames(settings.cluster.peers).contains(name) else {
      return UsageError(
        "--cluster-peers: the name in this node's own certificate, '\(server.name ?? "")', is missing; list the names of all nodes"
      )
    }
    return nil
  }
}
