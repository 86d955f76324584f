import Glibc
import SluiceIO
@testable import SluiceTLS
import SluiceSimulation
import TestSupport
import Testing

/// Reconnecting without a full handshake, and cases in which that isn't allowed.
@Suite struct ResumptionTests {
  private func isResumed(_ talker: Talker) throws -> Bool {
    try #require(talker.stream as? TLSStream).isResumed
  }

  /// Connects, exchanges some bytes so that the session arrives, and closes.
  private func visit(_ scene: Scene, _ client: TLSClient) throws -> (client: Talker, server: Talker) {
    let pair = try scene.pair(client)
    pair.server.send([1])
    #expect(scene.world.run { pair.client.received.count == 1 })
    pair.client.close()
    return pair
  }

  @Test func whoComesBackNeedsNoFullHandshake() throws {
    let scene = try Scene()
    let client = try scene.client()
    let first = try visit(scene, client)
    let second = try visit(scene, client)
    let third = try visit(scene, client)
    #expect(try !isResumed(first.client) && !isResumed(first.server))
    #expect(try isResumed(second.client) && isResumed(second.server))
    #expect(try isResumed(third.client))
    #expect(second.client.stream.security == first.client.stream.security)
    #expect(try !isResumed(visit(scene, try scene.client()).client))
  }

  @Test func whoComesBackIsStillWhoItWas() throws {
    let scene = try Scene { $0.clientCertificates = .required }
    let client = try scene.namedClient()
    let first = try visit(scene, client)
    let second = try visit(scene, client)
    #expect(try isResumed(second.server))
    #expect(second.server.stream.security?.peerName == "client")
    #expect(second.server.stream.security?.peerExpires == first.server.stream.security?.peerExpires)
  }

  @Test func aTicketIsWorthNoMoreThanTheClientsCertificate() throws {
    let certificates = try TestCertificates(days: 90)
    let scene = try Scene(certificates: certificates) { $0.clientCertificates = .required }
    try certificates.renew(days: 10)
    let client = try scene.namedClient()
    let first = try visit(scene, client)
    let end = try #require(first.server.stream.security?.peerExpires)
    scene.world.wallClock = end - 3_600_000
    #expect(try isResumed(visit(scene, client).server))
    scene.world.wallClock = end
    let refused = try scene.connect(client)
    #expect(scene.world.run { scene.refusals.count == 1 })
    #expect(scene.refusals.first?.description.contains("the peer's certificate has expired") == true)
    if case .success(let talker) = refused { talker.close() }
  }

  @Test func aServersCertificateThatHasEndedIsLookedAtAgain() throws {
    let scene = try Scene()
    let client = try scene.client()
    let first = try visit(scene, client)
    let end = try #require(first.client.stream.security?.peerExpires)
    scene.world.wallClock = end - 3_600_000
    #expect(try isResumed(visit(scene, client).client))
    scene.world.wallClock = end
    // OpenSSL uses the real clock, which hasn't moved.
    #expect(try !isResumed(visit(scene, client).client))
  }

  @Test func afterAReloadNobodyComesBackByWhatWasBefore() throws {
    let certificates = try TestCertificates()
    let scene = try Scene(certificates: certificates) { $0.clientCertificates = .required }
    let client = try scene.namedClient()
    _ = try visit(scene, client)
    try scene.server.reload()
    let again = try visit(scene, client)
    #expect(try !isResumed(again.server))
    #expect(try isResumed(visit(scene, client).server))
  }

  @Test func aTicketDoesNotGetPastAnAuthorityThatIsTrustedNoMore() throws {
    let certificates = try TestCertificates()
    let scene = try Scene(certificates: certificates) { $0.clientCertificates = .required }
    let client = try scene.namedClient()
    _ = try visit(scene, client)
    let others = try TestCertificates()
    try writeFile(certificates.authority, try readFile(others.authority))
    try scene.server.reload()
    switch try scene.connect(client) {
    case .failure(let error): #expect(error.isCertificateRefusal)
    case .success(let talker):
      talker.send([1])
      #expect(scene.world.run { talker.failure != nil })
      #expect(talker.failure?.isCertificateRefusal == true)
    }
    #expect(scene.world.run { scene.refusals.count == 1 })
  }

  @Test func sessionsAreOfOneServer() throws {
    let scene = try Scene()
    let client = try scene.client()
    _ = try visit(scene, client)
    let other = try Scene(seed: 2)
    // The same host and port of another world: its server can't read the ticket, and the handshake is a full one.
    #expect(try !isResumed(visit(other, client).client))
  }
}
