import Glibc
import SluiceIO
import SluiceSimulation
import SluiceTLS
import TestSupport
import Testing

/// Combinations of clients and servers that can connect, and the errors of all others.
@Suite struct HandshakeTests {
  @Test func bothSidesKnowWhatProtectsThem() throws {
    let scene = try Scene()
    let pair = try scene.pair()
    let ours = try #require(pair.client.stream.security)
    let theirs = try #require(pair.server.stream.security)
    #expect(ours.version == "TLSv1.3")
    #expect(ours.cipher == theirs.cipher)
    #expect(ours.peerName == "localhost")
    #expect(try #require(ours.peerExpires) > Int64(time(nil)) * 1_000)
    #expect(theirs.peerName == nil)
    #expect(theirs.peerExpires == nil)
    #expect(pair.client.stream.peer == scene.listener.address)
    guard case .tls("localhost", let port) = scene.listener.address else {
      Issue.record("the listener is at \(scene.listener.address)")
      return
    }
    #expect(port > 0)
  }

  @Test func anAuthorityThatIsNotTrustedIsNamedAsTheReason() throws {
    let scene = try Scene()
    let strangers = try TestCertificates()
    let client = try scene.client { $0.authorities = strangers.authority }
    let error = try #require(throws: IOError.self) { try scene.connect(client).get() }
    #expect(error.isCertificateRefusal)
    #expect(error.description.contains("isn't signed by an authority that is trusted here"))
    #expect(error.description.contains("connect to tls://localhost:"))
    #expect(scene.world.run { scene.refusals.count == 1 })
    #expect(scene.refusals.first?.isCertificateRefusal == true)
    #expect(scene.accepted.first?.failures == 1)
  }

  @Test func theSystemsAuthoritiesDoNotIncludeOurs() throws {
    let scene = try Scene()
    let error = try #require(throws: IOError.self) {
      try scene.connect(try TLSClient()).get()
    }
    #expect(error.isCertificateRefusal)
  }

  @Test(arguments: ["example.org", "10.1.2.3", "::2"])
  func aServerUnderAnotherNameIsRefused(host: String) throws {
    let scene = try Scene(host: host)
    let error = try #require(throws: IOError.self) { try scene.connect(try scene.client()).get() }
    #expect(error.isCertificateRefusal)
    #expect(error.description.contains("is for localhost, 127.0.0.1, ::1"), "\(error)")
    #expect(throws: Never.self) {
      try scene.connect(try scene.client { $0.serverName = "localhost" }).get()
    }
  }

  @Test(arguments: ["127.0.0.1", "::1", "localhost.", "LOCALHOST"])
  func aServerIsKnownByAnyOfItsNames(host: String) throws {
    let scene = try Scene(host: host)
    #expect(throws: Never.self) { try scene.pair() }
  }

  @Test func anExpectedNameCountsInsteadOfTheHosts() throws {
    let scene = try Scene()
    let client = try scene.client { $0.serverName = "other.example" }
    let error = try #require(throws: IOError.self) { try scene.connect(client).get() }
    #expect(error.isCertificateRefusal)
  }

  @Test func anExpiredCertificateIsRefused() throws {
    let scene = try Scene(certificates: try TestCertificates(days: -1))
    let error = try #require(throws: IOError.self) { try scene.connect(try scene.client()).get() }
    #expect(error.isCertificateRefusal)
    #expect(error.description.contains("has expired"))
  }

  @Test func aClientThatIsToldSoBelievesAnybody() throws {
    let scene = try Scene(certificates: try TestCertificates(days: -1), host: "other.example")
    let client = try scene.client {
      $0.verification = .disabledInsecurely
      $0.authorities = nil
    }
    let pair = try scene.pair(client)
    #expect(pair.client.stream.security?.version == "TLSv1.3")
    // Neither side has authenticated.
    #expect(pair.client.stream.security?.peerName == nil)
  }

  @Test func whoSaysNothingOfClientsIsNotAskedForOne() throws {
    let scene = try Scene { $0.clientCertificates = .off }
    let pair = try scene.pair(try scene.namedClient())
    #expect(pair.server.stream.security?.peerName == nil)
  }

  @Test(arguments: [TLSServerOptions.ClientCertificates.optional, .required])
  func aClientsCertificateSaysWhoItIs(mode: TLSServerOptions.ClientCertificates) throws {
    let scene = try Scene { $0.clientCertificates = mode }
    let pair = try scene.pair(try scene.namedClient())
    #expect(pair.server.stream.security?.peerName == "client")
    #expect(try #require(pair.server.stream.security?.peerExpires) > Int64(time(nil)) * 1_000)
  }

  @Test func anAddressForMailIsANameToo() throws {
    let certificates = try TestCertificates(client: "ada@example.org")
    let scene = try Scene(certificates: certificates) { $0.clientCertificates = .required }
    let pair = try scene.pair(try scene.namedClient())
    #expect(pair.server.stream.security?.peerName == "ada@example.org")
  }

  @Test func whoMustNotShowACertificateNeedNot() throws {
    let scene = try Scene { $0.clientCertificates = .optional }
    let pair = try scene.pair()
    #expect(pair.server.stream.security?.peerName == nil)
  }

  @Test func whoMustShowACertificateIsToldSo() throws {
    let scene = try Scene { $0.clientCertificates = .required }
    // With TLS 1.3 a client completes its handshake before the server has checked the client's certificate.
    let failure = try self.failure(of: try scene.client(), in: scene)
    #expect(failure.isCertificateRefusal)
    #expect(failure.description.contains("requires a client certificate"))
    #expect(scene.refusals.map(\.isCertificateRefusal) == [true])
    #expect(scene.accepted.first?.received == [])
  }

  @Test(arguments: [TLSServerOptions.ClientCertificates.optional, .required])
  func aClientsCertificateOfAnotherAuthorityIsRefused(mode: TLSServerOptions.ClientCertificates) throws {
    let scene = try Scene { $0.clientCertificates = mode }
    let strangers = try TestCertificates()
    let client = try scene.client {
      $0.certificate = strangers.client
      $0.key = strangers.clientKey
    }
    let failure = try self.failure(of: client, in: scene)
    #expect(failure.isCertificateRefusal, "\(failure)")
    #expect(scene.refusals.map(\.isCertificateRefusal) == [true])
  }

  @Test func aClientsExpiredCertificateIsRefused() throws {
    let certificates = try TestCertificates()
    let scene = try Scene(certificates: certificates) { $0.clientCertificates = .required }
    try certificates.renew(days: -1)
    let failure = try self.failure(of: try scene.namedClient(), in: scene)
    #expect(failure.isCertificateRefusal)
    #expect(failure.description.contains("expired"))
    #expect(scene.refusals.first?.description.contains("the client's certificate has expired") == true)
  }

  @Test func withoutAServersOrAClientsSideTLSIsNotSetUp() throws {
    let world = SimulatedWorld(seed: 1, loops: 1)
    let network = TLSNetwork(over: world.network)
    let error = try #require(throws: IOError.self) {
      try network.listen(at: .tls("localhost", port: 0), group: world.group) { _, _ in }
    }
    #expect(error.description.contains("TLS isn't set up"))
    var failure: IOError?
    world.loops[0].perform {
      _ = network.connect(to: .tls("localhost", port: 1), on: world.loops[0]) { result in
        if case .failure(let error) = result { failure = error }
      }
      #expect(failure == nil, "the completion came before connect has returned")
    }
    #expect(world.run { failure != nil })
  }

  @Test func otherAddressesArePassedOn() throws {
    let world = SimulatedWorld(seed: 1, loops: 1)
    let network = TLSNetwork(over: world.network)
    let listener = try network.listen(at: .host("localhost", port: 0), group: world.group) { _, _ in }
    var opened = false
    world.loops[0].perform {
      _ = network.connect(to: listener.address, on: world.loops[0]) { result in
        if case .success(let stream) = result { opened = stream.security == nil }
      }
    }
    #expect(world.run { opened })
  }

  /// Connects, and returns the error with which the connection must fail at some point.
  private func failure(of client: TLSClient, in scene: Scene) throws -> IOError {
    switch try scene.connect(client) {
    case .failure(let error): return error
    case .success(let talker):
      talker.send(Array("hello".utf8))
      #expect(scene.world.run { talker.failure != nil })
      return try #require(talker.failure)
    }
  }
}
