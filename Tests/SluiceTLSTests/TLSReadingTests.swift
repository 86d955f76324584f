import Glibc
import SluiceIO
import SluiceSimulation
import Testing

@testable import SluiceTLS

/// Reading from OpenSSL, with a transport that delivers exactly the test's bytes, and reports no events.
@Suite("reading from OpenSSL: what is handed out, and when the reader has to come back by itself")
struct TLSReadingTests {
  private static let peer = SocketAddress.host("peer", port: 1)

  private func link() throws -> Link { try Link() }

  @Test("without anything from the peer there is nothing to hand out, and nothing to come back for")
  func nothing() throws {
    let link = try link()
    #expect(link.read(100) == .wouldBlock)
    #expect(!link.hasMore)
  }

  @Test("the rest of a record is handed out without another word of the transport")
  func record() throws {
    let link = try link()
    link.send(pattern(1_000))
    #expect(link.read(100) == .bytes(100))
    #expect(link.wire.incoming.isEmpty && link.hasMore)
    #expect(link.read(800) == .bytes(800))
    #expect(link.hasMore)
    #expect(link.read(800) == .bytes(100))
    #expect(link.received == pattern(1_000))
    #expect(!link.hasMore)
    #expect(link.read(800) == .wouldBlock)
  }

  @Test("a part of a record isn't come back for before the transport has more")
  func part() throws {
    let link = try link()
    link.send(pattern(500))
    let rest = link.wire.holdBack(behind: 200)
    #expect(link.read(1_000) == .wouldBlock)
    #expect(!link.hasMore)
    link.wire.incoming += rest
    #expect(!link.hasMore)
    link.reading.transportHasMore()
    // OpenSSL has read the beginning.
    #expect(link.hasMore)
    #expect(link.read(1_000) == .bytes(500))
    #expect(link.received == pattern(500))
  }

  @Test("the end comes behind the bytes before it, once, and nothing comes behind it")
  func end() throws {
    let link = try link()
    link.send(pattern(300))
    link.server.sayGoodbye()
    link.server.flush()
    #expect(link.read(1_000) == .bytes(300))
    #expect(!link.reading.hasEnded)
    #expect(link.hasMore)
    #expect(link.read(1_000) == .end)
    #expect(link.reading.hasEnded)
    #expect(!link.hasMore)
    link.reading.transportHasMore()
    #expect(!link.hasMore)
  }

  @Test("a cut comes behind the bytes before it, as a failure")
  func cut() throws {
    let link = try link()
    link.send(pattern(300))
    link.wire.hasEnded = true
    #expect(link.read(200) == .bytes(200))
    #expect(link.read(200) == .bytes(100))
    #expect(link.hasMore)
    guard case .failed(let error) = link.read(200) else {
      Issue.record("a cut isn't a failure")
      return
    }
    #expect(error.isTLSFailure)
    #expect(error.description.contains("\(Self.peer)"))
    #expect(!link.reading.hasEnded)
  }

  @Test("a transport that fails is read to its end first")
  func failure() throws {
    let link = try link()
    link.send(pattern(300))
    link.wire.failure = IOError(action: "read", code: ECONNRESET)
    #expect(link.read(200) == .bytes(200))
    #expect(link.hasMore)
    #expect(link.read(200) == .bytes(100))
    #expect(link.hasMore)
    guard case .failed(let error) = link.read(200) else {
      Issue.record("the transport's failure isn't told")
      return
    }
    #expect(error.code == ECONNRESET)
  }

  @Test("a transport that can't be written to any more is read to its end, and fails then")
  func deafPeer() throws {
    let link = try link()
    link.send(pattern(300))
    link.wire.writeFailure = IOError(action: "write", code: EPIPE)
    link.write(pattern(10))
    #expect(link.hasMore)
    #expect(link.read(1_000) == .bytes(300))
    #expect(link.hasMore)
    #expect(link.read(1_000) == .failed(IOError(action: "write", code: EPIPE)))
  }

  @Test("one read takes a bounded share of the transport, and comes back for the rest")
  func share() throws {
    let link = try link()
    // Each has 22 bytes of overhead: more than twice the share that a read of all bytes may have.
    for place in 0..<6_000 { link.send(pattern(1, from: place)) }
    let before = link.wire.incoming.count
    guard case .bytes(let count) = link.read(10_000) else {
      Issue.record("nothing was read")
      return
    }
    #expect(count < 6_000)
    #expect(before - link.wire.incoming.count < 10_000 + (128 << 10))
    #expect(!link.wire.incoming.isEmpty && link.hasMore)
    var turns = 1
    while link.hasMore, turns < 10 {
      _ = link.read(10_000)
      turns += 1
    }
    #expect(link.received == pattern(6_000))
    #expect(turns < 5)
  }

  @Test("whatever the pieces, what is handed out is what was sent, and no turn is missed", arguments: 1...30)
  func comparison(seed: UInt64) throws {
    let link = try link()
    var random = SeededRandom(seed: seed)
    var sent = 0
    for _ in 0..<60 {
      let count = random.length()
      if count > 0 { link.send(pattern(count, from: sent)) }
      sent += count
    }
    let isOrderly = random.next(below: 2) == 0
    if isOrderly {
      link.server.sayGoodbye()
      link.server.flush()
    }
    var ciphertext = link.wire.holdBack(behind: 0)[...]
    var last: ReadResult?
    while last == nil {
      let piece = ciphertext.prefix(Int(random.next(below: 40_000)))
      ciphertext = ciphertext.dropFirst(piece.count)
      link.wire.incoming += piece
      if ciphertext.isEmpty { link.wire.hasEnded = true }
      // Like the transport, while it has bytes or an end to deliver.
      repeat {
        link.reading.transportHasMore()
        repeat {
          switch link.read(1 + random.length()) {
          case .bytes, .wouldBlock: break
          case .end, .failed: last = last ?? link.lastResult
          }
        } while link.hasMore && last == nil
      } while last == nil && (!link.wire.incoming.isEmpty || link.wire.hasEnded)
    }
    #expect(link.received == pattern(sent), "seed \(seed)")
    #expect(link.reading.hasEnded == isOrderly, "seed \(seed)")
  }

  /// Two sides of TLS, of which one is read by a ``TLSReading``.
  private final class Link {
    let wire = Wire()
    private let back = Wire()
    private let client: TLSEngine
    let server: TLSEngine
    var reading = TLSReading()
    private(set) var received: [UInt8] = []
    private(set) var lastResult = ReadResult.wouldBlock

    init() throws {
      let scene = try Scene()
      let shared = TLSLoop(scene.world.loops[0], patience: .seconds(1))
      wire.other = back
      back.other = wire
      let side = TLSSide.client(try scene.client(), server: "localhost", port: 1)
      client = side.makeEngine(wire, shared)
      let context = try #require(scene.server.context(for: .sluice))
      server = TLSSide.server(context, refused: nil).makeEngine(back, shared)
      var isOpen = (false, false)
      for _ in 0..<10 where !(isOpen.0 && isOpen.1) {
        isOpen.0 = isOpen.0 || Self.shakes(client)
        isOpen.1 = isOpen.1 || Self.shakes(server)
      }
      try #require(isOpen == (true, true))
      // Tickets arrive after the handshake.
      #expect(read(10) == .wouldBlock)
      reading = TLSReading()
    }

    private static func shakes(_ engine: TLSEngine) -> Bool {
      defer { engine.flush() }
      if case .done = engine.handshake() { return true }
      return false
    }

    var hasMore: Bool { reading.hasMore(client) }

    /// Sends from the side that isn't read here, in one record each.
    func send(_ bytes: [UInt8]) { Self.write(bytes, to: server) }

    func write(_ bytes: [UInt8]) { Self.write(bytes, to: client) }

    private static func write(_ bytes: [UInt8], to engine: TLSEngine) {
      #expect(bytes.withUnsafeBytes { engine.write($0) } == nil)
      engine.flush()
    }

    func read(_ count: Int) -> ReadResult {
      received += [UInt8](unsafeUninitializedCapacity: count) { buffer, written in
        lastResult = reading.read(
          client, into: UnsafeMutableRawBufferPointer(buffer), from: TLSReadingTests.peer)
        if case .bytes(let count) = lastResult { written = count }
      }
      return lastResult
    }
  }

  /// One end of a transport in memory.
  private final class Wire: ByteStream {
    let peer = TLSReadingTests.peer
    weak var other: Wire?
    var incoming: [UInt8] = []
    /// After the available bytes.
    var hasEnded = false
    var failure: IOError?
    var writeFailure: IOError?
    var readsPaused = false

    func start(_ handler: any ByteStreamHandler) {}
    func close() {}
    func abort() {}

    /// Removes and returns the bytes after the first `count`.
    func holdBack(behind count: Int) -> [UInt8] {
      defer { incoming.removeLast(incoming.count - count) }
      return Array(incoming.dropFirst(count))
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
      guard !incoming.isEmpty else {
        if let failure { return .failed(failure) }
        return hasEnded ? .end : .wouldBlock
      }
      let count = min(buffer.count, incoming.count)
      buffer.copyBytes(from: incoming.prefix(count))
      incoming.removeFirst(count)
      return .bytes(count)
    }

    func write(_ vectors: UnsafeBufferPointer<iovec>) -> WriteResult {
      if let writeFailure { return .failed(writeFailure) }
      var count = 0
      for vector in vectors {
        let bytes = UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len)
        other?.incoming += bytes
        count += bytes.count
      }
      return .wrote(count)
    }
  }
}
