import EngineTestSupport
import Glibc
import SluiceIO
import SluiceNATS
import Synchronization
import TestSupport
import Testing

/// Tests with three real servers that replicate.
@Suite(
  "Three real nats-servers",
  .enabled(
    if: EngineProcess.program != nil, "nats-server isn't installed: scripts/nats-server.sh installs it"),
  .serialized)
struct ClusterTests {
  private static func open() throws -> (EngineCluster, RealClient) {
    let cluster = try EngineCluster()
    let client = try client(of: cluster.servers)
    var stream = StreamConfiguration("S", subjects: ["s.>"])
    stream.replicas = 3
    stream.allowsAtomicBatches = true
    stream.allowsDirectReads = true
    let configuration = stream
    // The servers elect a leader first.
    _ = try client.retry { try $0.createStream(configuration, $1) }
    return (cluster, client)
  }

  private static func client(of servers: [EngineProcess]) throws -> RealClient {
    try RealClient(servers) { $0.credentials = .fixed(.password(user: "app", password: "secret")) }.open()
  }

  @Test("all servers say that they sync, and the client learns of them from one")
  func servers() throws {
    let (_, client) = try Self.open()
    let names = try client.retry { try $0.streamInfo("S", $1) }.servers
    #expect(names == ["n1", "n2", "n3"])
    let servers = try client.get { try $0.servers(expecting: names, $1) }
    #expect(servers.map(\.name) == names)
    #expect(servers.flatMap { $0.objections() } == [])
  }

  @Test("when the leader is killed, nothing that was acknowledged is lost, and what is unknown is found out")
  func leaderKilled() throws {
    let (cluster, client) = try Self.open()
    let leader = try client.retry { api, done in
      try api.streamInfo("S") { result in
        done(result.flatMap { info in info.cluster?.leader.map { .success($0) } ?? .failure(Self.noLeader) })
      }
    }
    // A correct writer: each commit expects the sequence of the previous one, and an unknown outcome is resolved.
    let writer = SharedMutex(Mutex(Writer()))
    client.perform { client in writer.mutex.withLock { $0.client = client } }
    client.perform { _ in Self.commit(writer) }
    try eventually("some commits", every: 0.001) { writer.mutex.withLock { $0.acknowledged.count >= 50 } }
    cluster.server(leader).kill()
    let before = writer.mutex.withLock { $0.acknowledged.count }
    try eventually("commits with another leader: \(client.events)") {
      writer.mutex.withLock { $0.acknowledged.count >= before + 50 }
    }
    writer.mutex.withLock { $0.isStopped = true }
    try eventually("the last outcome") { writer.mutex.withLock { !$0.isRunning } }
    let (acknowledged, fault) = writer.mutex.withLock { ($0.acknowledged, $0.fault) }
    #expect(fault == nil)
    // Each commit has two messages, whose payload is its number. All acknowledged ones are stored once, in order.
    let read = SharedMutex(Mutex<[Int]>([]))
    var next: UInt64 = 1
    while true {
      let start = next
      let page = try client.retry { api, done in
        try api.messages(
          of: "S", matching: "s.a", from: start, count: 1_000,
          each: { message in read.mutex.withLock { $0.append(message.payload.number ?? -1) } }, done)
      }
      next = page.lastSequence + 1
      if page.pending == 0 { break }
    }
    let stored = read.mutex.withLock { $0 }
    #expect(stored == acknowledged)
    #expect(stored == Array(0..<stored.count))
  }

  private static let noLeader = NATSError(.unavailable, "the stream has no leader")

  /// Makes one commit after another, each expecting the sequence of the one before. Unchecked: the client is used only on its loop.
  private struct Writer: @unchecked Sendable {
    var client: NATSClient!
    var next = 0
    var sequence: UInt64 = 0
    var acknowledged: [Int] = []
    var isRunning = true
    var isStopped = false
    var unknown = 0
    var fault: String?
  }

  /// Makes the next commit. Called on the loop.
  private static func commit(_ writer: SharedMutex<Writer>) {
    let (api, number, sequence) = writer.mutex.withLock { (JetStream($0.client), $0.next, $0.sequence) }
    if writer.mutex.withLock({ $0.isStopped }) { return writer.mutex.withLock { $0.isRunning = false } }
    let batch = [
      message("s.a", "\(number)") { $0.expectLastSequence(sequence) }, message("s.b", "\(number)"),
    ]
    do {
      try api.commit(batch, to: "S") { result in
        switch result {
        case .success(let acknowledgement): done(number, acknowledgement.sequence, writer)
        case .failure(let error) where error.code == .wrongLastSequence:
          writer.mutex.withLock {
            $0.fault = "commit \(number) expected \(sequence): \(error)"
            $0.isRunning = false
          }
        case .failure(let error) where error.provesNothingWasStored: again(writer) { commit(writer) }
        case .failure: again(writer) { findOut(number, sequence, writer) }
        }
      }
    } catch {
      again(writer) { commit(writer) }
    }
  }

  private static func done(_ number: Int, _ sequence: UInt64, _ writer: SharedMutex<Writer>) {
    writer.mutex.withLock {
      $0.acknowledged.append(number)
      $0.next = number + 1
      $0.sequence = sequence
    }
    commit(writer)
  }

  private static func again(_ writer: SharedMutex<Writer>, _ body: @escaping () -> Void) {
    let loop = writer.mutex.withLock { $0.client.loop }
    _ = loop.schedule(after: .milliseconds(20)) { body() }
  }

  /// A barrier resolves it: if it can be stored at the old end, the commit wasn't stored.
  private static func findOut(_ number: Int, _ sequence: UInt64, _ writer: SharedMutex<Writer>) {
    let api = writer.mutex.withLock {
      $0.unknown += 1
      return JetStream($0.client)
    }
    do {
      try api.publish(message("s.barrier") { $0.expectLastSequence(sequence) }, to: "S") { result in
        switch result {
        case .success(let acknowledgement):
          writer.mutex.withLock { $0.sequence = acknowledgement.sequence }
          commit(writer)
        case .failure(let error) where error.code == .wrongLastSequence:
          readBehind(number, sequence, writer)
        case .failure: again(writer) { findOut(number, sequence, writer) }
        }
      }
    } catch {
      again(writer) { findOut(number, sequence, writer) }
    }
  }

  /// A message follows the old end: the commit, or a barrier with an unknown outcome.
  private static func readBehind(_ number: Int, _ sequence: UInt64, _ writer: SharedMutex<Writer>) {
    let api = writer.mutex.withLock { JetStream($0.client) }
    do {
      try api.leaderMessage(.sequence(sequence + 1), of: "S") { result in
        switch result {
        case .success(let stored) where stored.subject == "s.barrier":
          writer.mutex.withLock { $0.sequence = sequence + 1 }
          commit(writer)
        case .success(let stored) where stored.payload == bytes("\(number)"):
          done(number, sequence + 2, writer)
        case .success(let stored):
          writer.mutex.withLock {
            $0.fault = "\(stored) is behind \(sequence)"
            $0.isRunning = false
          }
        case .failure: again(writer) { readBehind(number, sequence, writer) }
        }
      }
    } catch {
      again(writer) { readBehind(number, sequence, writer) }
    }
  }

  @Test(
    "a connection that is lost in the middle of a batch leaves its outcome unknown, and nothing of it is stored"
  )
  func cutInTheMiddle() throws {
    let (cluster, client) = try Self.open()
    // A separate client, whose connection passes through a gate.
    let gate = try Gate(to: cluster.servers[0].host)
    let loop = try EpollLoop.start(name: "gated")
    defer {
      loop.stop()
      loop.join()
    }
    var options = NATSOptions()
    options.allowsPlaintextCredentials = true
    options.usesDiscoveredServers = false
    options.credentials = .fixed(.password(user: "app", password: "secret"))
    let gated = try NATSClient(
      [try NATSAddress(parsing: gate.address)], options: options, network: SocketNetwork(), on: loop)
    let connected = Flag()
    loop.execute {
      gated.start { event in
        if case .connected = event { connected.raise() }
      }
    }
    try eventually("a connection through the gate") { connected.isRaised }
    let outcome = SharedMutex(Mutex<NATSError?>(nil))
    // The first 100 of 200 messages pass.
    gate.cut(after: 100 * 128)
    loop.execute {
      let batch = (0..<200).map { number in
        message("s.a", String(repeating: "x", count: 128)) { if number == 0 { $0.expectLastSequence(0) } }
      }
      try! JetStream(gated).commit(batch, to: "S") { result in
        if case .failure(let error) = result { outcome.mutex.withLock { $0 = error } }
      }
    }
    try eventually("the outcome") { outcome.mutex.withLock { $0 != nil } }
    let error = try #require(outcome.mutex.withLock { $0 })
    // All bytes were written to the socket before the connection was cut.
    #expect(error.code == .outcomeUnknown)
    #expect(!error.provesNothingWasStored)
    // The barrier shows that the batch wasn't stored, and prevents that later.
    let barrier = try client.retry { api, done in
      try api.publish(message("s.barrier") { $0.expectLastSequence(0) }, to: "S", done)
    }
    #expect(barrier.sequence == 1)
    #expect(try client.retry { try $0.streamInfo("S", $1) }.state.messages == 1)
    loop.execute { gated.close() }
  }

  @Test("a former owner's commits are refused once its successor has written")
  func fencing() throws {
    let (cluster, old) = try Self.open()
    let new = try Self.client(of: cluster.servers)
    func commit(_ client: RealClient, expecting sequence: UInt64, _ text: String) throws -> Result<
      PublishAcknowledgement, NATSError
    > {
      try client.result { api, done in
        try api.commit(
          [message("s.a", text) { $0.expectLastSequence(sequence) }, message("s.b", text)], to: "S", done)
      }
    }
    #expect(try commit(old, expecting: 0, "old").get().sequence == 2)
    // The successor reads the end, and writes its term there.
    let end = try new.retry { try $0.streamInfo("S", $1) }.state.lastSequence
    let term = try new.get {
      try $0.publish(message("s.term", "2") { $0.expectLastSequence(end) }, to: "S", $1)
    }
    #expect(term.sequence == 3)
    for _ in 0..<20 {
      guard case .failure(let error) = try commit(old, expecting: 2, "old") else {
        Issue.record("a former owner's commit was stored")
        return
      }
      #expect(error.code == .wrongLastSequence)
    }
    #expect(try commit(new, expecting: 3, "new").get().sequence == 5)
    #expect(try new.retry { try $0.streamInfo("S", $1) }.state.messages == 5)
  }
}
