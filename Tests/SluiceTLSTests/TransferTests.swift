import Glibc
import SluiceIO
@testable import SluiceTLS
import SluiceSimulation
import TestSupport
import Testing

/// Whether every byte arrives, once and in order, on any kind of network.
@Suite struct TransferTests {
  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func bothDirectionsByAnyPieces(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var conditions = SimulatedConditions()
    conditions.bufferSize = [13, 1_000, 20_000, 65_536, 400_000][random.next(in: 0...4)]
    conditions.partialReadOneIn = random.next(in: 1...4)
    conditions.shortWriteOneIn = random.next(in: 1...8)
    conditions.retransmission = .milliseconds(1) ... .milliseconds(20)
    let scene = try Scene(seed: seed, conditions: conditions)
    if random.oneIn(2) {
      // Long enough between cuts for repeated bytes to arrive.
      scene.world.faults.cutEvery = .milliseconds(400)
      scene.world.faults.cutLength = .milliseconds(1) ... .milliseconds(100)
      scene.world.faults.stallEvery = .milliseconds(50)
      scene.world.faults.stallLength = .milliseconds(1) ... .milliseconds(20)
    }
    let pair = try scene.pair()
    let most = conditions.bufferSize < 100 ? 10_000 : conditions.bufferSize < 10_000 ? 100_000 : 1_000_000
    let there = pattern(random.next(in: 0...most))
    let back = pattern(random.next(in: 0...most), from: 77)
    for talker in [pair.client, pair.server] {
      talker.readSize = [5_000, 65_536, 7][random.next(in: 0...(most > 50_000 ? 1 : 2))]
      var sizes = SeededRandom(seed: seed &+ 99)
      talker.pieceSizes = { sizes.length() }
    }
    pair.client.send(there)
    pair.server.send(back)
    #expect(
      scene.world.run(limit: .seconds(36_000)) {
        pair.server.received.count == there.count && pair.client.received.count == back.count
      })
    let same = pair.server.received == there && pair.client.received == back
    #expect(same)
    pair.client.close()
    #expect(scene.world.run { pair.server.ended })
    for talker in [pair.client, pair.server] {
      #expect(talker.writableCalls <= talker.shortWrites)
      #expect(talker.callsAfterTheEnd == 0)
    }
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func oneByteAtATime(seed: UInt64) throws {
    var conditions = SimulatedConditions()
    conditions.bufferSize = 1
    let scene = try Scene(seed: seed, conditions: conditions)
    let pair = try scene.pair()
    pair.client.send(pattern(2_000))
    pair.server.send(pattern(2_000, from: 5))
    #expect(
      scene.world.run(limit: .seconds(3_600)) {
        pair.server.received.count == 2_000 && pair.client.received.count == 2_000
      })
    #expect(pair.server.received == pattern(2_000))
    #expect(pair.client.received == pattern(2_000, from: 5))
  }

  @Test func whatLiesInOpenSSLIsHandedOutByAndBy() throws {
    let scene = try Scene(conditions: .calm)
    let pair = try scene.pair { $0.readSize = 100 }
    // One record: the transport has nothing more after the first read.
    pair.server.send(pattern(5_000))
    #expect(scene.world.run { pair.client.received.count == 5_000 })
    #expect(pair.client.received == pattern(5_000))
    #expect(pair.client.readableCalls >= 50)
  }

  @Test func aReaderIsCalledOncePerTurn() throws {
    let scene = try Scene(conditions: .calm)
    let pair = try scene.pair()
    var turns: [UInt64] = []
    pair.client.onReadable = { talker in
      turns.append(talker.loop.turns)
      talker.readSize = 1_000
      talker.readOnce()
    }
    pair.server.send(pattern(200_000))
    #expect(scene.world.run { pair.client.received.count == 200_000 })
    #expect(Set(turns).count == turns.count, "called twice in a turn")
  }

  @Test func nothingIsReadWhileReadsArePausedAndNothingIsLost() throws {
    let scene = try Scene()
    let pair = try scene.pair { $0.readSize = 10 }
    pair.server.send(pattern(100))
    #expect(scene.world.run { pair.client.received.count >= 20 })
    pair.client.pause(true)
    let before = pair.client.received.count
    let calls = pair.client.readableCalls
    scene.world.run(for: .seconds(1))
    #expect(pair.client.received.count == before)
    #expect(pair.client.readableCalls == calls)
    pair.client.pause(false)
    #expect(scene.world.run { pair.client.received.count == 100 })
    #expect(pair.client.received == pattern(100))
  }

  @Test func aPeerThatReadsNothingIsKeptBoundedCiphertextFor() throws {
    let scene = try Scene()
    let pair = try scene.pair { $0.stream.readsPaused = true }
    pair.server.send(pattern(5_000_000))
    scene.world.run(for: .seconds(5))
    let stream = try #require(pair.server.stream as? TLSStream)
    #expect(pair.server.unsent > 4_000_000)
    #expect(stream.unsentCount <= 256 << 10)
    pair.client.pause(false)
    #expect(scene.world.run { pair.client.received.count == 5_000_000 })
    #expect(stream.unsentCount == 0)
  }

  @Test func smallVectorsBecomeFullRecords() {
    var random = SeededRandom(seed: 3)
    let staging = UnsafeMutableRawBufferPointer.allocate(byteCount: TLSLoop.recordSize, alignment: 16)
    defer { staging.deallocate() }
    for _ in 0..<200 {
      let bytes = pattern(random.next(in: 0...200_000))
      bytes.withUnsafeBytes { bytes in
        var vectors: [iovec] = []
        var offset = 0
        while offset < bytes.count {
          let length = min(random.length(), bytes.count - offset)
          vectors.append(
            iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress! + offset), iov_len: length))
          offset += length
        }
        vectors.append(iovec(iov_base: nil, iov_len: 0))
        vectors.withUnsafeBufferPointer { vectors in
          var pieces = RecordPieces(vectors, staging: staging)
          var joined: [UInt8] = []
          while let piece = pieces.next() {
            #expect(!piece.isEmpty)
            joined += piece
            let isLast = joined.count == bytes.count
            #expect(piece.count % TLSLoop.recordSize == 0 || isLast)
            #expect(pieces.isAtEnd == isLast)
          }
          #expect(pieces.isAtEnd)
          #expect(joined.elementsEqual(bytes))
        }
      }
    }
  }
}
