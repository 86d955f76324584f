import Glibc
import SluiceIO
import Testing

/// Listening and connecting, on any network.
@Suite struct NetworkContractTests {
  @Test(arguments: Venue.all) func connectingWhereNobodyListensIsAnErrorThatNamesTheAddress(venue: Venue)
    throws
  {
    try venue.use { stage in
      let listener = try stage.network.listen(at: stage.freshAddress(), group: LoopGroup(stage.loops)) {
        _, _ in
      }
      listener.close()
      let result = try stage.open(to: listener.address)
      guard case .failure(let error) = result else {
        Issue.record("connected to a closed listener")
        return
      }
      #expect(error.code == ECONNREFUSED || error.code == ENOENT)
      #expect(error.description.contains("connect to \(listener.address)"))
    }
  }

  @Test(arguments: Venue.all) func anAbandonedAttemptNeverCompletes(venue: Venue) throws {
    try venue.use { stage in
      let listener = try stage.network.listen(at: stage.freshAddress(), group: LoopGroup(stage.loops)) {
        _, _ in
      }
      let completions = Shared(0)
      let network = stage.network
      let loop = stage.loops[0]
      stage.run(on: loop) {
        let attempt = network.connect(to: listener.address, on: loop) { _ in completions.change { $0 += 1 } }
        attempt.abandon()
        attempt.abandon()
      }
      stage.settle()
      #expect(completions.value == 0)
    }
  }

  @Test(arguments: Venue.all) func theCompletionComesAfterConnectHasReturned(venue: Venue) throws {
    try venue.use { stage in
      let listener = try stage.network.listen(at: stage.freshAddress(), group: LoopGroup(stage.loops)) {
        stream, loop in
        stream.start(Peer(stream: stream, loop: loop))
      }
      let network = stage.network
      let loop = stage.loops[0]
      let order = Shared<[String]>([])
      stage.run(on: loop) {
        _ = network.connect(to: listener.address, on: loop) { _ in order.change { $0.append("completed") } }
        order.change { $0.append("returned") }
      }
      #expect(stage.wait { order.value.count == 2 })
      #expect(order.value == ["returned", "completed"])
    }
  }

  @Test(arguments: Venue.all) func aStreamIsAcceptedOnTheLoopItBelongsTo(venue: Venue) throws {
    try venue.use { stage in
      let strays = Shared(0)
      let accepted = Shared(0)
      let listener = try stage.network.listen(at: stage.freshAddress(), group: LoopGroup(stage.loops)) {
        stream, loop in
        if !loop.isCurrent { strays.change { $0 += 1 } }
        accepted.change { $0 += 1 }
        let peer = Peer(stream: stream, loop: loop)
        peer.closesAtEnd = true
        stream.start(peer)
      }
      for _ in 0..<10 { _ = try stage.open(to: listener.address).get() }
      #expect(stage.wait { accepted.value == 10 })
      #expect(strays.value == 0)
    }
  }

  @Test(arguments: Venue.all) func manyConnectionsEachKeepTheirBytes(venue: Venue) throws {
    try venue.use { stage in
      let listener = try stage.network.listen(at: stage.freshAddress(), group: LoopGroup(stage.loops)) {
        stream, loop in
        let peer = Peer(stream: stream, loop: loop)
        peer.echoes = true
        peer.closesAtEnd = true
        stream.start(peer)
      }
      let count = 200
      let network = stage.network
      let opened = Shared<[Int: Peer]>([:])
      for loop in stage.loops {
        let first = loop === stage.loops[0] ? 0 : count / 2
        loop.execute {
          for number in first..<first + count / 2 {
            _ = network.connect(to: listener.address, on: loop) { result in
              guard case .success(let stream) = result else { return }
              let peer = Peer(stream: stream, loop: loop)
              stream.start(peer)
              peer.send(pattern(2_000, from: number * 31))
              opened.change { $0[number] = peer }
            }
          }
        }
      }
      #expect(stage.wait { opened.value.count == count })
      let peers = opened.value
      #expect(stage.wait { peers.values.allSatisfy { $0.received.count == 2_000 } })
      for (number, peer) in peers { expectSame(peer.received, pattern(2_000, from: number * 31)) }
      for peer in peers.values { stage.with(peer) { $0.close() } }
    }
  }

  @Test(arguments: Venue.all) func anAddressInUseIsRefused(venue: Venue) throws {
    try venue.use { stage in
      let group = LoopGroup(stage.loops)
      let listener = try stage.network.listen(at: stage.freshAddress(), group: group) { _, _ in }
      let error = #expect(throws: IOError.self) {
        _ = try stage.network.listen(at: listener.address, group: group) { _, _ in }
      }
      #expect(error?.code == EADDRINUSE)
      #expect(error?.description.contains("\(listener.address)") == true)
    }
  }

  @Test(arguments: Venue.all) func anAddressCanBeListenedAtAgainAfterClose(venue: Venue) throws {
    try venue.use { stage in
      let group = LoopGroup(stage.loops)
      let first = try stage.network.listen(at: stage.freshAddress(), group: group) { _, _ in }
      first.close()
      first.close()
      let accepted = Shared(0)
      let second = try stage.network.listen(at: first.address, group: group) { stream, loop in
        stream.start(Peer(stream: stream, loop: loop))
        accepted.change { $0 += 1 }
      }
      #expect(second.address == first.address)
      _ = try stage.open(to: second.address).get()
      #expect(stage.wait { accepted.value == 1 })
    }
  }

  @Test(arguments: Venue.all) func connectionsOutliveTheirListener(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect { peer, isServer in peer.echoes = isServer }
      pair.listener.close()
      stage.settle()
      stage.with(pair.client) { $0.send(pattern(100)) }
      #expect(stage.wait { pair.client.received == pattern(100) })
    }
  }

  @Test(arguments: Venue.all) func aStreamKnowsWhomItIsConnectedTo(venue: Venue) throws {
    try venue.use { stage in
      let pair = try stage.connect()
      #expect(stage.with(pair.client) { $0.stream.peer } == pair.listener.address)
    }
  }
}
