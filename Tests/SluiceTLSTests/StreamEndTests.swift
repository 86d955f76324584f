import Glibc
import SluiceIO
@testable import SluiceTLS
import SluiceSimulation
import TestSupport
import Testing

/// How TLS connections end, in order or by force.
@Suite struct StreamEndTests {
  @Test func theEndOfTheTransportAloneIsAFailure() throws {
    let scene = try Scene()
    let pair = try scene.pair()
    pair.server.send(pattern(1_000))
    #expect(scene.world.run { pair.client.received.count == 1_000 })
    // An attacker on the network can end the connection, but can't send TLS's close notification.
    scene.world.loops[0].perform { scene.world.network.connections[0].server.close() }
    #expect(scene.world.run { pair.client.failure != nil })
    #expect(!pair.client.ended)
    #expect(pair.client.failure?.isTLSFailure == true)
    #expect(pair.client.failure?.description.contains("something may be missing") == true)
    #expect(pair.client.failures == 1)
  }

  @Test func whatCameBeforeTheCutIsHandedOutFirst() throws {
    var conditions = SimulatedConditions()
    conditions.shortWriteOneIn = 0
    for seed in 1...20 as ClosedRange<UInt64> {
      let scene = try Scene(seed: seed, conditions: conditions)
      let pair = try scene.pair { $0.readSize = 50 }
      pair.server.send(pattern(1_000))
      scene.world.loops[0].perform { scene.world.network.connections[0].server.close() }
      #expect(scene.world.run { pair.client.failure != nil })
      #expect(pair.client.received == pattern(1_000))
      #expect(pair.client.failures == 1)
    }
  }

  @Test func whoHasEndedIsStillWrittenTo() throws {
    let scene = try Scene()
    let pair = try scene.pair()
    pair.server.close()
    #expect(scene.world.run { pair.client.ended })
    pair.client.send(pattern(10_000))
    scene.world.run(for: .milliseconds(100))
    #expect(pair.client.failure == nil)
    #expect(pair.client.unsent == 0)
    let calls = pair.client.readableCalls
    scene.world.run(for: .seconds(1))
    #expect(pair.client.readableCalls == calls)
    pair.client.close()
  }

  @Test(arguments: 1...10 as ClosedRange<UInt64>)
  func closeSendsWhatWasWritten(seed: UInt64) throws {
    let scene = try Scene(seed: seed)
    let pair = try scene.pair { $0.stream.readsPaused = true }
    pair.server.send(pattern(400_000))
    scene.world.run(for: .milliseconds(100))
    let taken = 400_000 - pair.server.unsent
    #expect(taken > 100_000)
    pair.server.close()
    pair.client.send(pattern(400_000))
    scene.world.run(for: .milliseconds(100))
    pair.client.pause(false)
    #expect(scene.world.run { pair.client.ended })
    #expect(pair.client.received == pattern(taken))
    #expect(pair.client.failure == nil)
    #expect(pair.server.callsAfterTheEnd == 0)
  }

  @Test func aClosedStreamDoesNotWaitForeverForAPeerThatReadsNothing() throws {
    let scene = try Scene()
    let pair = try scene.pair { $0.stream.readsPaused = true }
    pair.server.send(pattern(400_000))
    pair.server.close()
    #expect(scene.world.loops[0].streamCount == 1)
    #expect(scene.world.run { scene.world.loops[0].streamCount == 0 })
  }

  @Test(arguments: [true, false])
  func whoClosesWithinACallbackHearsNothingMore(abruptly: Bool) throws {
    let end: (Talker) -> Void = { abruptly ? $0.abortHere() : $0.closeHere() }
    for seed in 1...10 as ClosedRange<UInt64> {
      let scene = try Scene(seed: seed)
      let reader = try scene.pair { $0.onReadable = end }
      reader.server.send(pattern(100_000))
      #expect(scene.world.run { reader.server.ended || reader.server.failure != nil })
      #expect(reader.client.readableCalls == 1)

      let writer = try scene.pair { talker in
        talker.onWritable = end
        talker.stream.readsPaused = true
      }
      writer.server.pause(true)
      writer.client.send(pattern(1_000_000))
      #expect(writer.client.unsent > 0)
      writer.server.pause(false)
      #expect(scene.world.run { writer.server.ended || writer.server.failure != nil })

      let loser = try scene.pair { $0.onFailed = end }
      scene.world.network.connections.last?.reset()
      #expect(scene.world.run { loser.client.failure != nil })
      scene.world.run(for: .seconds(1))
      for talker in [reader.client, writer.client, loser.client] { #expect(talker.callsAfterTheEnd == 0) }
      #expect(loser.client.failures == 1)
    }
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func aResetIsReportedOnceWheneverItComes(seed: UInt64) throws {
    let scene = try Scene(seed: seed)
    var random = SeededRandom(seed: seed)
    scene.world.faults.resetEvery = .milliseconds(random.next(in: 1...12))
    var clients: [Talker] = []
    var refused = 0
    for _ in 0..<10 {
      switch try scene.connect(try scene.client()) {
      case .failure: refused += 1
      case .success(let talker):
        talker.send(pattern(random.next(in: 0...300_000)))
        clients.append(talker)
      }
    }
    scene.world.run(for: .seconds(5))
    for talker in clients { #expect(talker.failures == 1) }
    for talker in scene.accepted { #expect(talker.failures == 1) }
    for talker in clients + scene.accepted { #expect(talker.callsAfterTheEnd == 0) }
  }

  @Test func nothingIsLeftOfAStreamThatIsOver() throws {
    let scene = try Scene()
    weak var stream: TLSStream?
    weak var other: TLSStream?
    weak var handler: Talker?
    do {
      scene.prepare = { other = $0.stream as? TLSStream }
      let client = try scene.client()
      let talker = try scene.connect(client).get()
      stream = talker.stream as? TLSStream
      handler = talker
      #expect(scene.world.run { scene.accepted.first?.stream.security != nil })
      #expect(stream != nil && other != nil)
      talker.close()
    }
    #expect(scene.world.run { scene.accepted[0].ended })
    scene.accepted[0].close()
    scene.forget()
    scene.world.run(for: .seconds(10))
    // The world keeps its own streams, which have released the test's.
    #expect(handler == nil)
    #expect(stream == nil)
    #expect(other == nil)
  }

  @Test func anAttemptThatIsAbandonedInTheHandshakeEndsThere() throws {
    for seed in 1...20 as ClosedRange<UInt64> {
      let scene = try Scene(seed: seed)
      let network = TLSNetwork(over: scene.world.network, client: try scene.client())
      let loop = scene.world.loops[1]
      var completions = 0
      let attempt = loop.perform {
        network.connect(to: scene.listener.address, on: loop) { _ in completions += 1 }
      }
      scene.world.run(for: .microseconds(Int(seed) * 300))
      guard completions == 0 else { continue }
      loop.perform { attempt.abandon() }
      scene.world.run(for: .seconds(5))
      #expect(completions == 0)
      #expect(scene.accepted.allSatisfy { $0.failures == 1 })
    }
  }
}
