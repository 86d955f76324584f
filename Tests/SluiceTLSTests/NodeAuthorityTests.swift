import Glibc
import SluiceIO
import SluiceSimulation
@testable import SluiceTLS
import TestSupport
import Testing

/// Peers of a server that are nodes of its cluster, according to the authority that has signed their certificates.
@Suite struct NodeAuthorityTests {
  private let nodes: TestCertificates
  private let clients: TestCertificates

  init() throws {
    nodes = try TestCertificates(nodes: ["n1", "n2"])
    clients = try TestCertificates(client: "n1")
  }

  /// A server with the certificate of n1, and clients with certificates of another authority.
  private func scene(
    _ mode: TLSServerOptions.ClientCertificates, _ change: (inout TLSServerOptions) -> Void = { _ in }
  ) throws -> Scene {
    try Scene { options in
      options.certificate = nodes.path(of: "n1.pem")
      options.key = nodes.path(of: "n1.key")
      options.clientCertificates = mode
      options.clientAuthorities = clients.authority
      options.nodeAuthorities = nodes.authority
      change(&options)
    }
  }

  private func client(_ scene: Scene, certificate: String?, key: String? = nil) throws -> TLSClient {
    try scene.client {
      $0.authorities = nodes.authority
      $0.certificate = certificate
      $0.key = key
    }
  }

  private func security(_ scene: Scene, certificate: String?, key: String? = nil) throws -> StreamSecurity {
    let pair = try scene.pair(try client(scene, certificate: certificate, key: key))
    return try #require(pair.server.stream.security)
  }

  @Test(arguments: TLSServerOptions.ClientCertificates.allCases)
  func aCertificateOfTheNodesAuthorityIsANodes(mode: TLSServerOptions.ClientCertificates) throws {
    let scene = try scene(mode)
    let security = try security(
      scene, certificate: nodes.path(of: "n2.pem"), key: nodes.path(of: "n2.key"))
    #expect(security.nodeName == "n2" && security.peerName == nil)
    #expect(try #require(security.peerExpires) > Int64(time(nil)) * 1_000)
    #expect(scene.server.nodeObjection == nil && scene.server.name == "n1")
  }

  @Test(arguments: [TLSServerOptions.ClientCertificates.optional, .required])
  func aClientWithTheNameOfANodeIsAClient(mode: TLSServerOptions.ClientCertificates) throws {
    let security = try security(try scene(mode), certificate: clients.client, key: clients.clientKey)
    #expect(security.peerName == "n1" && security.nodeName == nil)
  }

  @Test func whereClientsShowNoCertificatesTheirsAreWorthNothing() throws {
    let scene = try scene(.off)
    let security = try security(scene, certificate: clients.client, key: clients.clientKey)
    #expect(security.peerName == nil && security.nodeName == nil && security.peerExpires == nil)
    let strangers = try TestCertificates(nodes: ["n2"])
    let stranger = try self.security(
      scene, certificate: strangers.path(of: "n2.pem"), key: strangers.path(of: "n2.key"))
    #expect(stranger.peerName == nil && stranger.nodeName == nil)
    let none = try self.security(scene, certificate: nil)
    #expect(none.peerName == nil && none.nodeName == nil)
  }

  @Test(arguments: [TLSServerOptions.ClientCertificates.optional, .required])
  func aCertificateOfAStrangersAuthorityIsRefused(mode: TLSServerOptions.ClientCertificates) throws {
    let scene = try scene(mode)
    let strangers = try TestCertificates(nodes: ["n2"])
    let pair = try client(
      scene, certificate: strangers.path(of: "n2.pem"), key: strangers.path(of: "n2.key"))
    // With TLS 1.3 a client completes its handshake before the server has checked the client's certificate.
    _ = try scene.connect(pair)
    #expect(scene.world.run { scene.refusals.count == 1 })
    #expect(scene.refusals.first?.isCertificateRefusal == true)
  }

  @Test func anAuthorityOfClientsMakesNoNodes() throws {
    let scene = try scene(.optional) { $0.clientAuthorities = nodes.authority }
    let security = try security(
      scene, certificate: nodes.path(of: "n2.pem"), key: nodes.path(of: "n2.key"))
    #expect(security.nodeName == nil && security.peerName == "n2")
    #expect(scene.server.nodeObjection?.contains("an authority that signs clients' certificates") == true)
  }

  @Test func aCertificateForServersAloneIsNoNodes() throws {
    let scene = try scene(.off) {
      $0.nodeAuthorities = clients.authority
      $0.certificate = clients.server
      $0.key = clients.serverKey
    }
    #expect(scene.server.nodeObjection?.hasPrefix("as a client certificate: ") == true)
    let pair = try scene.pair(
      try scene.client {
        $0.authorities = clients.authority
        $0.certificate = clients.server
        $0.key = clients.serverKey
      })
    #expect(pair.server.stream.security?.nodeName == nil)
  }

  @Test func aServerThatDoesNotNameNodesHasNone() throws {
    let scene = try scene(.optional) {
      $0.clientAuthorities = nodes.authority
      $0.nodeAuthorities = nil
    }
    let security = try security(
      scene, certificate: nodes.path(of: "n2.pem"), key: nodes.path(of: "n2.key"))
    #expect(security.nodeName == nil && security.peerName == "n2")
    #expect(scene.server.nodeObjection != nil)
  }

  /// A resumed session doesn't have the certificates that distinguish a node from a client.
  @Test func nothingIsResumed() throws {
    let scene = try scene(.optional)
    let client = try client(scene, certificate: nodes.path(of: "n2.pem"), key: nodes.path(of: "n2.key"))
    for _ in 0..<3 {
      let pair = try scene.pair(client)
      #expect(pair.server.stream.security?.nodeName == "n2")
      pair.server.send([1, 2, 3])
      #expect(scene.world.run { pair.client.received.count == 3 })
      #expect((pair.server.stream as? TLSStream)?.isResumed == false)
      pair.client.close()
      scene.world.run(for: .seconds(1))
    }
  }

  @Test func clientsReadTheirFilesAgain() throws {
    let scene = try scene(.off)
    let client = try client(scene, certificate: nodes.path(of: "n2.pem"), key: nodes.path(of: "n2.key"))
    _ = try scene.pair(client)
    var options = client.options
    options.certificate = nodes.path(of: "n1.pem")
    #expect(throws: TLSSetupError.self) { try client.reload(options) }
    #expect(client.options.certificate == nodes.path(of: "n2.pem"))
    options.key = nodes.path(of: "n1.key")
    try client.reload(options)
    #expect(try scene.pair(client).server.stream.security?.nodeName == "n1")
  }
}
