import Glibc
import SluiceIO
import Testing

/// The behaviour of a byte stream, on any network.
@Suite struct StreamContractTests {
  @Test(arguments: Venue.all) func echoesWhatIsSent(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect { peer, isServer in peer.echoes = isServer }
      let bytes = pattern(300_000)
      stage.with(pair.client) { $0.send(bytes) }
      #expect(stage.wait { pair.client.received.count == bytes.count })
      expectSame(pair.client.received, bytes)
    }
  }

  @Test(arguments: Venue.all) func bothDirectionsCarryAtOnce(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect()
      let there = pattern(1_000_000)
      let back = pattern(1_000_000, from: 77)
      stage.with(pair.client) { $0.send(there) }
      stage.with(pair.server) { $0.send(back) }
      #expect(
        stage.wait { pair.server.received.count == there.count && pair.client.received.count == back.count })
      expectSame(pair.server.received, there)
      expectSame(pair.client.received, back)
    }
  }

  @Test(arguments: Venue.all) func moreVectorsThanTheSystemTakesAtOnceArriveInOrder(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect()
      let bytes = pattern(5_000)
      let taken = stage.with(pair.client) { peer in
        bytes.withUnsafeBytes { bytes in
          let base = UnsafeMutableRawPointer(mutating: bytes.baseAddress!)
          let vectors = (0..<2_500).map { iovec(iov_base: base + 2 * $0, iov_len: 2) }
          return vectors.withUnsafeBufferPointer { peer.stream.write($0) }
        }
      }
      guard case .wrote(let count) = taken else {
        Issue.record("write gave \(taken)")
        return
      }
      let rest = Array(bytes[count...])
      stage.with(pair.client) { $0.send(rest) }
      #expect(stage.wait { pair.server.received.count == bytes.count })
      expectSame(pair.server.received, bytes)
    }
  }

  @Test(arguments: Venue.all) func nothingToReadWouldBlock(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect()
      #expect(stage.with(pair.client) { $0.read(10).0 } == .wouldBlock)
    }
  }

  @Test(arguments: Venue.all) func aWriterIsHeldBackByAReaderThatStops(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect { peer, isServer in
        if isServer { peer.stream.readsPaused = true }
      }
      let bytes = pattern(stage.plenty)
      stage.with(pair.client) { $0.send(bytes) }
      stage.settle()
      #expect(pair.client.seen.unsent > 0, "all of it was taken although the server doesn't read")
      #expect(pair.server.seen.readableCalls == 0)
      stage.with(pair.server) { $0.stream.readsPaused = false }
      #expect(stage.wait { pair.server.received.count == bytes.count })
      expectSame(pair.server.received, bytes)
      #expect(pair.client.seen.writableCalls > 0)
    }
  }

  @Test(arguments: Venue.all) func readableComesAgainWhileBytesAreLeft(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect { peer, isServer in
        if isServer { peer.readSize = 10 }
      }
      stage.with(pair.client) { $0.send(pattern(95)) }
      #expect(stage.wait { pair.server.received.count == 95 })
      #expect(pair.server.seen.readableCalls >= 10)
    }
  }

  @Test(arguments: Venue.all) func pausedReadsResumeWithNothingLost(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect()
      for round in 0..<5 {
        stage.with(pair.server) { $0.stream.readsPaused = true }
        stage.with(pair.client) { $0.send(pattern(1_000, from: round * 1_000)) }
        stage.settle()
        #expect(pair.server.received.count == round * 1_000)
        stage.with(pair.server) { $0.stream.readsPaused = false }
        #expect(stage.wait { pair.server.received.count == (round + 1) * 1_000 })
      }
      expectSame(pair.server.received, pattern(5_000))
    }
  }

  @Test(arguments: Venue.all) func streamWritableIsCalledOnlyAfterAShortWrite(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect()
      stage.with(pair.client) { $0.send([1, 2, 3]) }
      #expect(stage.wait { pair.server.received.count == 3 })
      stage.settle()
      let seen = pair.client.seen
      #expect(seen.writableCalls == seen.shortWrites)
    }
  }
}

/// How a stream ends, and the events on the other side.
@Suite struct StreamEndContractTests {
  @Test(arguments: Venue.all) func closingIsTheEndForThePeerAndNothingForTheCloser(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect()
      stage.with(pair.client) { $0.close() }
      #expect(stage.wait { pair.server.seen.ended })
      stage.with(pair.server) { $0.close() }
      stage.settle()
      #expect(pair.server.seen.failure == nil)
      #expect(pair.client.seen.ended == false)
      #expect(pair.client.seen.callsAfterTheEnd == 0)
      #expect(pair.server.seen.callsAfterTheEnd == 0)
    }
  }

  @Test(arguments: Venue.all) func closeStillSendsWhatWasWritten(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect { peer, isServer in
        if isServer { peer.stream.readsPaused = true }
      }
      // As many bytes as the transport accepts at once, and then the end.
      let plenty = stage.plenty
      let taken = stage.with(pair.client) { peer in
        peer.send(pattern(plenty))
        let taken = plenty - peer.seen.unsent
        peer.close()
        return taken
      }
      stage.with(pair.server) { $0.stream.readsPaused = false }
      #expect(stage.wait { pair.server.seen.ended })
      expectSame(pair.server.received, pattern(taken))
    }
  }

  @Test(arguments: Venue.all) func whatTheCloserLeavesUnreadDoesNotCostThePeerItsLastWords(venue: Venue)
    throws
  {
    try venue.use { stage in
      let pair = try stage.connect { peer, _ in peer.stream.readsPaused = true }
      stage.with(pair.client) { $0.send(pattern(100_000)) }
      stage.settle()
      stage.with(pair.server) { peer in
        peer.send(Array("goodbye".utf8))
        peer.close()
      }
      // More arrives at the side that has closed; it must not answer with a reset.
      stage.with(pair.client) { $0.send(pattern(100_000)) }
      stage.settle()
      stage.with(pair.client) { $0.stream.readsPaused = false }
      #expect(stage.wait { pair.client.seen.ended })
      #expect(pair.client.received == Array("goodbye".utf8))
      #expect(pair.client.seen.failure == nil)
    }
  }

  @Test(arguments: Venue.all) func abortIsAFailureForThePeer(venue: Venue) throws {
    guard venue.hasResets else { return }
    try venue.use { stage in
      let pair = try stage.connect()
      stage.with(pair.client) { $0.abort() }
      #expect(stage.wait { pair.server.seen.failure != nil })
      #expect(pair.server.seen.failure?.code == ECONNRESET)
      stage.settle()
      #expect(pair.server.seen.ended == false)
      #expect(pair.client.seen.callsAfterTheEnd == 0)
      #expect(pair.server.seen.callsAfterTheEnd == 0)
    }
  }

  @Test(arguments: Venue.all) func aResetIsNoticedWhileReadsArePaused(venue: Venue) throws {
    guard venue.hasResets else { return }
    try venue.use { stage in
      let pair = try stage.connect()
      stage.with(pair.server) { $0.stream.readsPaused = true }
      stage.with(pair.client) { $0.abort() }
      #expect(stage.wait { pair.server.seen.failure != nil })
      #expect(pair.server.seen.readableCalls == 0)
    }
  }

  @Test(arguments: Venue.all) func theEndIsNotNoticedWhileReadsArePaused(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect()
      stage.with(pair.server) { $0.stream.readsPaused = true }
      stage.with(pair.client) { $0.close() }
      stage.settle()
      #expect(pair.server.seen.ended == false)
      #expect(pair.server.seen.failure == nil)
      stage.with(pair.server) { $0.stream.readsPaused = false }
      #expect(stage.wait { pair.server.seen.ended })
    }
  }

  @Test(arguments: Venue.all) func afterTheEndReadableIsNotCalledAgain(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect()
      stage.with(pair.client) { $0.close() }
      #expect(stage.wait { pair.server.seen.ended })
      let calls = pair.server.seen.readableCalls
      stage.settle()
      #expect(pair.server.seen.readableCalls == calls)
      #expect(stage.with(pair.server) { $0.read(10).0 } == .end)
    }
  }

  @Test(arguments: Venue.all) func closingTwiceOrAfterAbortDoesNothing(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect()
      stage.with(pair.client) { peer in
        peer.close()
        peer.close()
        peer.abort()
        peer.close()
      }
      #expect(stage.wait { pair.server.seen.ended || pair.server.seen.failure != nil })
    }
  }

  @Test(arguments: Venue.all) func aClosedStreamTakesAndGivesNothing(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect()
      let results = stage.with(pair.client) { peer -> (Bool, Bool) in
        peer.close()
        var byte: UInt8 = 1
        let written = withUnsafeMutableBytes(of: &byte) { bytes in
          var vector = iovec(iov_base: bytes.baseAddress, iov_len: 1)
          return withUnsafePointer(to: &vector) {
            peer.stream.write(UnsafeBufferPointer(start: $0, count: 1))
          }
        }
        guard case .failed = written, case .failed = peer.read(10).0 else { return (false, false) }
        return (true, true)
      }
      #expect(results == (true, true))
    }
  }

  @Test(arguments: Venue.all) func theHandlerIsReleasedByClose(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect()
      let loop = pair.client.loop
      let released = Shared(false)
      let network = stage.network
      let address = pair.listener.address
      stage.run(on: loop) {
        _ = network.connect(to: address, on: loop) { result in
          guard case .success(let stream) = result else { return }
          stream.start(ReleaseWatcher { released.set(true) })
          _ = loop.schedule(after: .milliseconds(1)) { stream.close() }
        }
      }
      #expect(stage.wait { released.value })
    }
  }

  @Test(arguments: Venue.all) func anEventFetchedBeforeItsStreamWasClosedIsDropped(venue: Venue) throws {
    try venue.use { stage in
      // Two streams of one loop become readable in the same turn; whichever is first closes the other.
      let pairs = try (0..<8).map { _ in try stage.connect() }
      let apart = pairs.filter { $0.server.loop === stage.loops[1] }
      try #require(apart.count >= 2)
      let (first, second) = (apart[0], apart[1])
      let calls = Shared(0)
      let one = first.client
      let two = second.client
      stage.run(on: stage.loops[0]) {
        one.onReadable = {
          calls.change { $0 += 1 }; two.close(); one.stream.readsPaused = true
        }
        two.onReadable = {
          calls.change { $0 += 1 }; one.close(); two.stream.readsPaused = true
        }
      }
      // Holds real loops until both streams have something to read.
      let held = Shared(false)
      let arrived = Shared(false)
      if stage is SocketStage {
        stage.loops[0].execute {
          held.set(true)
          while !arrived.value { usleep(100) }
        }
        #expect(stage.wait { held.value })
      }
      for peer in [first.server, second.server] { stage.with(peer) { $0.send([1]) } }
      arrived.set(true)
      #expect(stage.wait { calls.value > 0 })
      stage.settle()
      #expect(calls.value == 1)
    }
  }
}

/// A handler that reports when it is released.
private final class ReleaseWatcher: ByteStreamHandler {
  private let released: () -> Void

  init(_ released: @escaping () -> Void) { self.released = released }

  deinit { released() }

  func streamReadable() {}
  func streamWritable() {}
  func streamFailed(_ error: IOError) {}
}
