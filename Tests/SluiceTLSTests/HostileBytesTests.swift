import Glibc
import SluiceIO
@testable import SluiceTLS
import SluiceSimulation
import TestSupport
import Testing

/// Peers that don't speak TLS, or violate it.
@Suite struct HostileBytesTests {
  /// Connects to the scene without TLS, and sends `bytes`.
  private func plain(_ scene: Scene, _ bytes: [UInt8]) throws -> Talker {
    guard case .tls(let host, let port) = scene.listener.address else { throw TestFailure("no TLS") }
    var talker: Talker?
    let loop = scene.world.loops[1]
    loop.perform {
      _ = scene.world.network.connect(to: .host(host, port: port), on: loop) { result in
        guard case .success(let stream) = result else { return }
        talker = Talker(stream, on: loop)
        stream.start(talker!)
      }
    }
    #expect(scene.world.run { talker != nil })
    let found = try #require(talker)
    found.send(bytes)
    return found
  }

  @Test(arguments: ["SLUICE hello there", "GET / HTTP/1.1\r\n\r\n", "\0\0\0\0\0\0\0\0\0\0\0\0"])
  func aClientWithoutTLSIsToldSoInTLS(words: String) throws {
    let scene = try Scene()
    let talker = try plain(scene, Array(words.utf8))
    #expect(scene.world.run { talker.ended || talker.failure != nil })
    // A fatal alert, which clients without TLS can recognise by its first bytes.
    #expect(talker.received.starts(with: [0x15, 3]))
    #expect(scene.refusals.count == 1)
    #expect(scene.refusals.first?.description.contains("doesn't speak TLS") == true)
    #expect(scene.accepted[0].failures == 1)
    #expect(scene.accepted[0].received == [])
  }

  @Test(arguments: ["SLUICE hello there", "HTTP/1.1 400 Bad Request\r\n\r\n", ""])
  func aServerWithoutTLSIsSaidToHaveNone(words: String) throws {
    let scene = try Scene()
    var servers: [Talker] = []
    let loop = scene.world.loops[0]
    let box = Unchecked { stream in
      let talker = Talker(stream, on: loop)
      talker.onReadable = {
        $0.readAll()
        _ = Array(words.utf8).withUnsafeBytes { bytes in
          var vector = iovec(
            iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
          return withUnsafePointer(to: &vector) { stream.write(UnsafeBufferPointer(start: $0, count: 1)) }
        }
        $0.closeHere()
      }
      servers.append(talker)
      stream.start(talker)
    }
    let listener = try scene.world.network.listen(at: .host("plain", port: 0), group: LoopGroup([loop])) {
      stream, _ in
      box.body(stream)
    }
    guard case .host(let host, let port) = listener.address else { throw TestFailure("no host") }
    let error = try #require(throws: IOError.self) {
      try scene.connect(try scene.client(), to: .tls(host, port: port)).get()
    }
    #expect(error.isTLSFailure)
    #expect(!error.isCertificateRefusal)
    #expect(
      error.description.contains(words.isEmpty ? "does it speak TLS there?" : "doesn't speak TLS there"),
      "\(error)")
  }

  private final class Unchecked: @unchecked Sendable {
    // A simulated world is used by one thread.
    let body: (any ByteStream) -> Void

    init(_ body: @escaping (any ByteStream) -> Void) {
      self.body = body
    }
  }

  @Test(arguments: 1...60 as ClosedRange<UInt64>)
  func garbageInTheHandshakeIsRefusedOnce(seed: UInt64) throws {
    let scene = try Scene(seed: seed)
    var random = SeededRandom(seed: seed)
    // Bytes that look like a ClientHello at first.
    let claimed = random.next(in: 0...400)
    var bytes: [UInt8] = [22, 3, UInt8(random.next(in: 0...4)), UInt8(claimed >> 8), UInt8(claimed & 255)]
    bytes += (0..<random.next(in: 0...600)).map { _ in UInt8(random.next(below: 256)) }
    if random.oneIn(3), bytes.count > 11 {
      bytes[5] = 1
      bytes[9] = 3
      bytes[10] = 3
    }
    let talker = try plain(scene, bytes)
    talker.close()
    #expect(scene.world.run { scene.accepted.first?.failures == 1 })
    scene.world.run(for: .seconds(5))
    #expect(scene.accepted[0].failures == 1)
    #expect(scene.accepted[0].received == [])
    #expect(scene.accepted[0].callsAfterTheEnd == 0)
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func changedBytesAreNoticedAndNeverHandedOut(seed: UInt64) throws {
    var conditions = SimulatedConditions()
    conditions.shortWriteOneIn = 0
    let scene = try Scene(seed: seed, conditions: conditions)
    var random = SeededRandom(seed: seed)
    let pair = try scene.pair()
    pair.client.send(pattern(3_000))
    #expect(scene.world.run { pair.server.received.count == 3_000 })
    // A record that neither side has made, sent without the client's knowledge.
    let length = random.next(in: 1...500)
    var forged: [UInt8] = [23, 3, 3, UInt8(length >> 8), UInt8(length & 255)]
    forged += (0..<length).map { _ in UInt8(random.next(below: 256)) }
    let raw = scene.world.network.connections[0].client
    scene.world.loops[1].perform {
      forged.withUnsafeBytes { bytes in
        var vector = iovec(
          iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
        _ = withUnsafePointer(to: &vector) { raw.write(UnsafeBufferPointer(start: $0, count: 1)) }
      }
    }
    pair.client.send(pattern(100))
    #expect(scene.world.run { pair.server.failure != nil })
    #expect(pair.server.received.count == 3_000)
    #expect(pair.server.failures == 1)
    #expect(pair.server.failure?.isTLSFailure == true)
    #expect(scene.world.run { pair.client.failure != nil || pair.client.ended })
  }

  @Test func listsOfProtocolsAreReadToTheirEndAndNoFurther() {
    func place(_ list: [UInt8], of name: ApplicationProtocol = .sluice) -> Range<Int>? {
      list.withUnsafeBufferPointer { name.place(in: $0) }
    }
    let ours = TLSContext.protocolList
    #expect(place(ours) == 1..<ours.count)
    #expect(place([2, 104, 50] + ours) == 4..<3 + ours.count)
    let (old, new) = ([8] + Array("http/1.0".utf8), [8] + Array("http/1.1".utf8))
    #expect(place(old + new, of: .http) == 10..<18)
    #expect(place([2, 104, 50] + old, of: .http) == 4..<12)
    #expect(place([2, 104, 50]) == nil)
    #expect(place([]) == nil)
    #expect(place([0, 0, 0]) == nil)
    #expect(place([255]) == nil)
    #expect(place(Array(ours.dropLast())) == nil)
    #expect(place([7] + ours.dropFirst()) == nil)
  }
}
