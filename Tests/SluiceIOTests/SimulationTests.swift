import Glibc
import SluiceIO
import SluiceSimulation
import Testing

/// A world with an echoing server on one loop and a client on another.
private final class EchoWorld {
  let world: SimulatedWorld
  let server: SimulatedLoop
  let client: SimulatedLoop
  let address: SocketAddress
  let accepted = Shared<[Peer]>([])

  init(seed: UInt64, conditions: SimulatedConditions = SimulatedConditions(), echoes: Bool = true) throws {
    world = SimulatedWorld(seed: seed, loops: 0, conditions: conditions)
    server = world.makeLoop(name: "server")
    client = world.makeLoop(name: "client")
    let accepted = accepted
    let listener = try world.network.listen(
      at: .host("broker", port: 7420), group: LoopGroup([server])
    ) { stream, loop in
      let peer = Peer(stream: stream, loop: loop)
      peer.echoes = echoes
      peer.closesAtEnd = true
      accepted.change { $0.append(peer) }
      stream.start(peer)
    }
    address = listener.address
  }

  /// Starts to connect. The result is set while the world runs.
  func open(_ prepare: @escaping @Sendable (Peer) -> Void = { _ in }) -> Shared<Result<Peer, IOError>?> {
    let opened = Shared<Result<Peer, IOError>?>(nil)
    let client = client
    client.perform {
      _ = world.network.connect(to: address, on: client) { result in
        opened.set(
          result.map { stream in
            let peer = Peer(stream: stream, loop: client)
            prepare(peer)
            stream.start(peer)
            return peer
          })
      }
    }
    return opened
  }

  func connect(_ prepare: @escaping @Sendable (Peer) -> Void = { _ in }) throws -> Peer {
    let opened = open(prepare)
    let sides = accepted.value.count
    try #require(world.run { opened.value != nil && accepted.value.count > sides })
    return try opened.value!.get()
  }
}

@Suite struct SimulatedWorldTests {
  private func trace(ofSeed seed: UInt64) throws -> [String] {
    let lines = Shared<[String]>([])
    let story = try EchoWorld(seed: seed)
    story.world.trace = { line in lines.change { $0.append(line) } }
    story.world.faults.cutEvery = .milliseconds(50)
    story.world.faults.stallEvery = .milliseconds(50)
    for number in 0..<5 {
      let opened = story.open { $0.send(pattern(100_000, from: number)) }
      _ = opened
    }
    story.world.run(for: .seconds(2))
    return lines.value
  }

  @Test func theSameSeedGivesTheSameRunAndAnotherSeedAnother() throws {
    let first = try trace(ofSeed: 7)
    #expect(first.count > 100)
    #expect(try trace(ofSeed: 7) == first)
    #expect(try trace(ofSeed: 8) != first)
  }

  @Test func randomNumbersAreThoseOfTheAlgorithm() {
    var random = SeededRandom(seed: 0)
    #expect(random.next() == 0xe220_a839_7b1d_cdaf)
    #expect(random.next() == 0x6e78_9e6a_a1b9_65f4)
    #expect(random.next() == 0x06c4_5d18_8009_454f)
  }

  @Test func randomNumbersStayInTheirRangeAndReachItsEnds() {
    var random = SeededRandom(seed: 1)
    let drawn = Set((0..<1_000).map { _ in random.next(in: -2...2) })
    #expect(drawn == [-2, -1, 0, 1, 2])
    #expect(random.next(in: Int.min...Int.max) != random.next(in: Int.min...Int.max))
  }

  @Test func timePassesOnlyAsFarAsTheTestLetsIt() throws {
    let world = SimulatedWorld(seed: 1, conditions: .calm)
    let fired = Shared(false)
    let start = world.now
    world.loops[0].perform {
      _ = world.loops[0].schedule(after: .seconds(3_600)) { fired.set(true) }
    }
    world.run(for: .seconds(3_599))
    #expect(world.now - start == .seconds(3_599))
    #expect(!fired.value)
    world.run(for: .seconds(1))
    #expect(fired.value)
    #expect(!world.step(), "something still happens in a world that is at rest")
  }

  @Test func aConditionThatNeverHoldsIsGivenUp() {
    let world = SimulatedWorld(seed: 1)
    #expect(!world.run { false })
  }

  @Test func theWallClockFollowsAndJumpsWhenSet() {
    let world = SimulatedWorld(seed: 3)
    let before = world.wallClock
    world.run(for: .seconds(5))
    #expect(world.wallClock == before + 5_000)
    world.wallClock = 1_000
    #expect(world.loops[0].perform { world.loops[0].wallClock } == 1_000)
    world.run(for: .seconds(5))
    #expect(world.wallClock == 6_000)
  }

  @Test func aStalledLoopDoesNothingUntilItGoesOn() throws {
    let story = try EchoWorld(seed: 4)
    let client = try story.connect()
    story.server.stall()
    client.loop.execute { client.send(pattern(100)) }
    story.world.run(for: .seconds(60))
    #expect(client.received == [])
    story.server.resume()
    #expect(story.world.run { client.received == pattern(100) })
    story.server.stall(for: .seconds(5))
    client.loop.execute { client.send(pattern(100, from: 100)) }
    story.world.run(for: .seconds(4))
    #expect(client.received.count == 100)
    #expect(story.world.run { client.received == pattern(200) })
  }

  @Test func aWorldThatIsLetGoReleasesItsLoopsAndHandlers() throws {
    weak var loop: SimulatedLoop?
    weak var peer: Peer?
    try {
      let story = try EchoWorld(seed: 5)
      let client = try story.connect()
      story.client.perform { _ = story.client.schedule(after: .seconds(1)) { client.close() } }
      loop = story.client
      peer = client
    }()
    #expect(peer == nil)
    #expect(loop == nil)
  }

  @Test func whatOutlivesItsWorldMayStillBeCalled() throws {
    var story: EchoWorld? = try EchoWorld(seed: 5)
    let client = try story!.connect()
    let signal = client.loop.makeSignal { Issue.record("a handler ran after its world's end") }
    story = nil
    signal.fire()
    client.loop.execute { Issue.record("a job ran after its world's end") }
  }
}

@Suite struct SimulatedFaultTests {
  @Test(arguments: 1...20) func nothingIsLostInACutThatHeals(seed: Int) throws {
    let story = try EchoWorld(seed: UInt64(seed))
    let client = try story.connect()
    let connection = story.world.network.connections[0]
    client.loop.execute { client.send(pattern(300_000)) }
    _ = story.world.run { client.received.count > 10_000 }
    connection.cut()
    let before = client.received.count
    story.world.run(for: .seconds(100))
    #expect(
      client.received.count - before <= story.world.conditions.bufferSize, "more than had arrived already")
    #expect(client.received.count < 300_000)
    #expect(client.seen.failure == nil)
    connection.heal()
    #expect(story.world.run { client.received.count == 300_000 })
    expectSame(client.received, pattern(300_000))
  }

  @Test(arguments: 1...20) func faultsThatHealLeaveTheBytesWhole(seed: Int) throws {
    let story = try EchoWorld(seed: UInt64(seed))
    story.world.faults.cutEvery = .milliseconds(20)
    story.world.faults.cutLength = .microseconds(10) ... .milliseconds(500)
    story.world.faults.stallEvery = .milliseconds(20)
    story.world.faults.stallLength = .microseconds(10) ... .milliseconds(50)
    let peers = try (0..<3).map { number in try story.connect { $0.send(pattern(200_000, from: number)) } }
    #expect(story.world.run { peers.allSatisfy { $0.received.count == 200_000 } })
    for (number, peer) in peers.enumerated() { expectSame(peer.received, pattern(200_000, from: number)) }
  }

  @Test(arguments: 1...20) func aResetLeavesABeginningOfTheBytesAndTellsBothSides(seed: Int) throws {
    let story = try EchoWorld(seed: UInt64(seed))
    story.world.faults.resetEvery = .milliseconds(10)
    let peer = try story.connect { $0.send(pattern(1_000_000)) }
    let server = story.accepted.value[0]
    #expect(story.world.run { peer.seen.failure != nil && server.seen.failure != nil })
    expectSame(peer.received, pattern(peer.received.count))
    #expect(peer.seen.failure?.code == ECONNRESET)
    #expect(peer.seen.callsAfterTheEnd == 0)
    #expect(server.seen.callsAfterTheEnd == 0)
  }

  @Test func aResetThatMeetsACutIsLostAndTheNextWriteFindsOut() throws {
    let story = try EchoWorld(seed: 9)
    let client = try story.connect()
    let server = story.accepted.value[0]
    let connection = story.world.network.connections[0]
    connection.cut()
    client.loop.execute { client.abort() }
    story.world.run(for: .seconds(10))
    connection.heal()
    story.world.run(for: .seconds(100))
    #expect(server.seen.failure == nil)
    server.loop.execute { server.send([1]) }
    #expect(story.world.run { server.seen.failure != nil })
  }

  @Test func anAddressThatIsCutLetsNobodyInUntilItHeals() throws {
    let story = try EchoWorld(seed: 10)
    story.world.network.cut(story.address)
    let opened = story.open { $0.send([1, 2, 3]) }
    story.world.run(for: .seconds(60))
    #expect(opened.value == nil)
    story.world.network.heal(story.address)
    #expect(story.world.run { opened.value != nil })
    let peer = try opened.value!.get()
    #expect(story.world.run { peer.received == [1, 2, 3] })
  }

  @Test func aCutBetweenTwoHoldsUpTheirConnectionsOnly() throws {
    let story = try EchoWorld(seed: 12)
    let network = story.world.network
    network.cut(from: "another", to: story.address)
    let client = try story.connect { $0.send([1]) }
    #expect(story.world.run { client.received == [1] })

    network.cut(from: "client", to: story.address)
    client.loop.execute { client.send([2]) }
    let opened = story.open { $0.send([3]) }
    story.world.run(for: .seconds(60))
    #expect(client.received == [1] && opened.value == nil)
    // A connection that is also cut in another way stays cut.
    network.cut(story.address)
    network.heal(from: "client", to: story.address)
    story.world.run(for: .seconds(60))
    #expect(client.received == [1] && opened.value == nil)
    network.heal(story.address)
    #expect(story.world.run { client.received == [1, 2] && opened.value != nil })
  }

  @Test func connectionsCanBeRefusedByChance() throws {
    let story = try EchoWorld(seed: 11)
    story.world.conditions.refusedOneIn = 2
    let attempts = (0..<40).map { _ in story.open() }
    #expect(story.world.run { attempts.allSatisfy { $0.value != nil } })
    let refused = attempts.count {
      if case .failure(let error) = $0.value { error.code == ECONNREFUSED } else { false }
    }
    #expect((1..<40).contains(refused))
  }

  @Test func aCrashedLoopLooksLikeAKilledProcess() throws {
    let story = try EchoWorld(seed: 12)
    let quiet = try story.connect()
    let busy = try story.connect()
    story.server.stall()
    busy.loop.execute { busy.send([1]) }
    story.world.run(for: .seconds(1))
    story.world.network.crash(story.server)
    #expect(story.world.run { quiet.seen.ended && busy.seen.failure != nil })
    let again = story.open()
    #expect(story.world.run { again.value != nil })
    guard case .failure(let error) = again.value else {
      Issue.record("a listener is left after the crash")
      return
    }
    #expect(error.code == ECONNREFUSED)
  }

  @Test func closingWithUnreadBytesCanBeMadeToReset() throws {
    var conditions = SimulatedConditions()
    conditions.resetsWhenClosedUnread = true
    let story = try EchoWorld(seed: 13, conditions: conditions)
    let client = try story.connect()
    let server = story.accepted.value[0]
    server.loop.execute { server.stream.readsPaused = true }
    client.loop.execute { client.send([1]) }
    story.world.run(for: .seconds(1))
    server.loop.execute { server.close() }
    #expect(story.world.run { client.seen.failure != nil })
    #expect(!client.seen.ended)
  }

  @Test func aDirectionHoldsNoMoreThanItsBuffer() throws {
    let story = try EchoWorld(seed: 14, echoes: false)
    story.world.conditions.bufferSize = 10_000
    let client = try story.connect()
    let server = story.accepted.value[0]
    client.loop.execute { client.send(pattern(100_000)) }
    let overfull = Shared(0)
    let done = story.world.run {
      let underway = 100_000 - client.seen.unsent - server.received.count
      if client.seen.shortWrites > 0, underway > 10_000 { overfull.change { $0 += 1 } }
      return server.received.count == 100_000
    }
    #expect(done)
    #expect(overfull.value == 0)
  }

  @Test func aDirectionIsNoFasterThanItsBandwidth() throws {
    let story = try EchoWorld(seed: 15, echoes: false)
    story.world.conditions.bytesPerSecond = 100_000
    let client = try story.connect()
    let start = story.world.now
    client.loop.execute { client.send(pattern(1_000_000)) }
    #expect(story.world.run { story.accepted.value[0].received.count == 1_000_000 })
    #expect(story.world.now - start > .seconds(9.9))
  }

  @Test func aCalmWorldLeavesNothingToChance() throws {
    let story = try EchoWorld(seed: 16, conditions: .calm)
    let client = try story.connect { $0.send(pattern(60_000)) }
    #expect(client.seen.shortWrites == 0)
    #expect(story.world.run { client.received.count == 60_000 })
    #expect(client.seen.readableCalls == 1)
  }
}
