import Glibc
import Testing

@testable import SluiceIO

/// The behaviour of real sockets only.
@Suite struct SocketNetworkTests {
  private func withGroup(_ body: (LoopGroup) throws -> Void) throws {
    let group = try LoopGroup.threads(count: 2)
    defer { group.stopThreads() }
    try body(group)
  }

  private func connect(to address: SocketAddress, on group: LoopGroup) -> Result<Void, IOError> {
    let result = Shared<Result<Bool, IOError>?>(nil)
    let loop = group.loops[0]
    let network = SocketNetwork()
    loop.execute {
      _ = network.connect(to: address, on: loop) { outcome in
        if case .success(let stream) = outcome { stream.close() }
        result.set(outcome.map { _ in true })
      }
    }
    while result.value == nil { usleep(200) }
    return result.value!.map { _ in }
  }

  @Test func aNameIsListenedAtAndConnectedTo() throws {
    try withGroup { group in
      let listener = try SocketNetwork().listen(at: .host("localhost", port: 0), group: group) { stream, _ in
        stream.close()
      }
      guard case .host("localhost", let port) = listener.address else {
        Issue.record("bound to \(listener.address)")
        return
      }
      #expect(port != 0)
      try connect(to: listener.address, on: group).get()
      try connect(to: .host("127.0.0.1", port: port), on: group).get()
    }
  }

  @Test func aNameThatDoesNotExistIsAnErrorInWords() throws {
    try withGroup { group in
      guard case .failure(let error) = connect(to: .host("no-such-host.invalid", port: 1), on: group) else {
        Issue.record("connected to a host that can't exist")
        return
      }
      #expect(error.description.hasPrefix("connect to no-such-host.invalid:1: "))
      #expect(error.reason != nil)
    }
  }

  @Test func whatAKilledProcessLeftOfAUnixSocketIsReplaced() throws {
    try withGroup { group in
      let path = SocketStage.freshPath()
      let stale = Socket.open(AF_UNIX)
      #expect(Socket.bind(stale, to: try #require(RawAddress(unixPath: path))) == 0)
      _ = Glibc.close(stale)
      let listener = try SocketNetwork().listen(at: .unix(path), group: group) { stream, _ in stream.close() }
      try connect(to: .unix(path), on: group).get()
      listener.close()
      #expect(access(path, F_OK) != 0, "the file of a closed listener is still there")
    }
  }

  @Test func aUnixSocketThatSomebodyAnswersAtIsLeftAlone() throws {
    try withGroup { group in
      let address = SocketAddress.unix(SocketStage.freshPath())
      let first = try SocketNetwork().listen(at: address, group: group) { stream, _ in stream.close() }
      let error = #expect(throws: IOError.self) {
        try SocketNetwork().listen(at: address, group: group) { _, _ in }
      }
      #expect(error?.code == EADDRINUSE)
      try connect(to: address, on: group).get()
      first.close()
    }
  }

  @Test func aFileThatIsNoSocketIsLeftAlone() throws {
    try withGroup { group in
      let path = SocketStage.freshPath()
      let file = creat(path, 0o600)
      _ = Glibc.close(file)
      defer { unlink(path) }
      let error = #expect(throws: IOError.self) {
        try SocketNetwork().listen(at: .unix(path), group: group) { _, _ in }
      }
      #expect(error?.code == EADDRINUSE)
      #expect(access(path, F_OK) == 0)
    }
  }

  /// Its effect takes minutes; the test reads the options of an accepted socket.
  @Test(arguments: [
    (Duration.zero, [0, 0, 0, 0]), (.milliseconds(1), [1, 1, 1, 4]), (.seconds(1), [1, 1, 1, 4]),
    (.seconds(20), [1, 20, 5, 4]), (.seconds(32_767), [1, 32_767, 8191, 4]),
  ])
  func peersOfAcceptedConnectionsAreProbed(keepalive: Duration, expected: [Int32]) throws {
    try withGroup { group in
      let found = Shared<[Int32]>([])
      let listener = try SocketNetwork(keepalive: keepalive).listen(
        at: .host("127.0.0.1", port: 0), group: group
      ) { stream, _ in
        func option(_ level: Int32, _ name: Int32) -> Int32 {
          var (value, size) = (Int32(-1), socklen_t(MemoryLayout<Int32>.size))
          guard let socket = stream as? SocketStream else { return -1 }
          getsockopt(socket.descriptor, level, name, &value, &size)
          return value
        }
        let tcp = Int32(IPPROTO_TCP)
        let isOn = option(SOL_SOCKET, SO_KEEPALIVE)
        found.set(
          [isOn] + [TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT].map { isOn == 0 ? 0 : option(tcp, $0) })
        stream.close()
      }
      try connect(to: listener.address, on: group).get()
      while found.value.isEmpty { usleep(200) }
      #expect(found.value == expected)
      listener.close()
    }
  }

  @Test func connectionsAreSpreadOverTheLoops() throws {
    try withGroup { group in
      let loops = Shared<[Int]>([])
      let listener = try SocketNetwork().listen(at: .host("127.0.0.1", port: 0), group: group) {
        stream, loop in
        loops.change { $0.append(loop === group.loops[0] ? 0 : 1) }
        // Kept open, since a loop's load is its number of open streams.
        stream.start(Peer(stream: stream, loop: loop))
      }
      let network = SocketNetwork()
      // Connected from a loop of its own, whose streams count for that loop alone.
      let outside = try EpollLoop.start(name: "outside")
      outside.execute {
        for _ in 0..<20 {
          _ = network.connect(to: listener.address, on: outside) { result in
            if case .success(let stream) = result { stream.start(Peer(stream: stream, loop: outside)) }
          }
        }
      }
      while loops.value.count < 20 { usleep(200) }
      #expect(loops.value.count { $0 == 0 } == 10)
      outside.stop()
      outside.join()
    }
  }

  @Test func acceptingGoesOnWhenThereAreDescriptorsAgain() async {
    await #expect(processExitsWith: .exitCode(42)) {
      let loop = try EpollLoop.start(name: "poor")
      let accepted = Shared(0)
      let listener = try SocketNetwork().listen(at: .host("127.0.0.1", port: 0), group: LoopGroup([loop])) {
        stream, _ in
        accepted.change { $0 += 1 }
        stream.close()
      }
      guard case .host(let host, let port) = listener.address,
        let address = RawAddress(numericHost: host, port: port)
      else { exit(1) }
      // The test's sockets exist before the descriptors run out; accepting would need one more.
      let own = (0..<5).map { _ in Socket.open(AF_INET) }
      var limit = rlimit(rlim_cur: 3, rlim_max: 4_096)
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      for descriptor in own { _ = Socket.connect(descriptor, to: address) }
      usleep(50_000)
      if accepted.value != 0 { exit(2) }
      let turns = Shared(0)
      let watched = EpollLoop.clock()
      loop.execute { loop.addTurnParticipant(TurnCounter { turns.change { $0 += 1 } }) }
      usleep(150_000)
      // A loop that retried without a pause would have made thousands of turns.
      if turns.value > 100 + Int((EpollLoop.clock() - watched).components.seconds) * 100 { exit(3) }
      limit.rlim_cur = 4_096
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      while accepted.value < 5 { usleep(1_000) }
      exit(42)
    }
  }

  @Test func anObjectPerConnectionIsSmall() throws {
    let loop = try EpollLoop(name: "unused")
    let stream = SocketStream(loop: loop, descriptor: -1, peer: .host("127.0.0.1", port: 65_535))
    // The allocator's own count; its declaration isn't in the Glibc module.
    typealias SizeOfBlock = @convention(c) (UnsafeMutableRawPointer?) -> Int
    let sizeOfBlock = unsafeBitCast(try #require(dlsym(nil, "malloc_usable_size")), to: SizeOfBlock.self)
    // Ten thousand idle connections must cost little; a field more here is 80 KiB more there.
    #expect(sizeOfBlock(Unmanaged.passUnretained(stream).toOpaque()) <= 128)
  }
}

private final class TurnCounter: TurnParticipant {
  private let count: () -> Void
  init(_ count: @escaping () -> Void) { self.count = count }

  func turnEnded() -> Bool {
    count()
    return false
  }
}
