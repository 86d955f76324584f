import SluiceIO
import SluiceStore
import Testing

@testable import SluiceCluster

@Suite("Which shards a node takes, moves and gives up")
struct ShardAllotmentTests {
  fileprivate static let now = MonotonicTime(nanoseconds: 1_000_000_000)

  /// The directory of node `a`, its leases, and its decisions.
  private struct Node {
    var directory = Directory()
    var allotment = ShardAllotment(for: "a", maximumMoves: 2)
    var leases: [Int: ShardLeaseState] = [:]
    var isLeaving = false
    private var sequence: UInt64 = 0

    init(shards: Int) {
      set(.cluster(ClusterRecord(shards: shards)))
      join("a")
    }

    mutating func set(_ record: ControlRecord) {
      sequence += 1
      _ = directory.apply(record, sequence, at: ShardAllotmentTests.now)
    }

    mutating func join(_ name: String, _ state: NodeRecord.State = .live) {
      set(
        .node(
          name,
          NodeRecord(writer: 1, count: 1, session: 1, state: state, address: "a:1", version: "1")))
      allotment.nodesChanged()
    }

    mutating func pin(_ shard: Int, to name: String?) {
      set(.pin(shard, name))
      allotment.nodesChanged()
    }

    mutating func shard(_ shard: Int, of owner: String, _ state: ShardRecord.State, term: UInt64 = 3) {
      let record = ShardRecord(writer: 1, count: 1, state: state, owner: owner, session: 1, term: term)
      set(.shard(shard, record))
      guard owner == "a" else { return }
      var lease = leases[shard] ?? ShardLeaseState()
      if lease.observed(record, writer: 1, session: 1) != [] { allotment.leasesChanged() }
      leases[shard] = lease.term == nil ? nil : lease
    }

    mutating func steps(after time: Duration = .zero) -> [ShardAllotment.Step] {
      allotment.steps(
        directory, leases, ControlRequests(retry: .milliseconds(100)), isLeaving: isLeaving,
        at: ShardAllotmentTests.now + time)
    }
  }

  @Test("a node takes what belongs to it and has no owner, and then nothing is due")
  func take() {
    var node = Node(shards: 3)
    #expect(node.steps() == [.take(0), .take(1), .take(2)])
    for shard in 0..<3 { node.shard(shard, of: "a", .held) }
    #expect(node.steps().isEmpty)
    #expect(node.allotment.deadlines.isEmpty)
    // Another node moves its own shards.
    node.join("b")
    node.pin(0, to: "b")
    for shard in 1..<3 { node.pin(shard, to: "a") }
    #expect(node.steps() == [.move(0, term: 3, to: "b")])
  }

  @Test("shards move a few at a time, and are given to the node that they belong to when they are closed")
  func moves() {
    var node = Node(shards: 4)
    for shard in 0..<4 {
      node.shard(shard, of: "a", .held)
      node.pin(shard, to: "b")
    }
    node.join("b")
    #expect(node.steps() == [.move(0, term: 3, to: "b"), .move(1, term: 3, to: "b")])
    for shard in 0..<2 { node.shard(shard, of: "a", .moving) }
    #expect(node.steps().isEmpty)
    node.leases[0]?.closed(3)
    node.allotment.leasesChanged()
    #expect(node.steps() == [.give(0, term: 3, to: "b")])
    let given = ShardRecord(
      writer: 2, count: 1, state: .held, owner: "b", session: 1, term: 9, giver: "a")
    node.set(.shard(0, given))
    #expect(node.leases[0]?.observed(given, writer: 1, session: 1) == [.released])
    node.leases[0] = nil
    node.allotment.leasesChanged()
    #expect(node.steps() == [.move(2, term: 3, to: "b")])
  }

  @Test("a node that leaves takes nothing, and gives up what it has, also without another node")
  func leaving() {
    var node = Node(shards: 2)
    node.shard(0, of: "a", .held)
    node.join("a", .leaving)
    node.isLeaving = true
    #expect(node.steps() == [.move(0, term: 3, to: nil)])
  }

  @Test("a node with many shards moves more of them at a time")
  func many() {
    var node = Node(shards: 200)
    for shard in 0..<200 { node.shard(shard, of: "a", .held) }
    node.join("b")
    node.join("a", .leaving)
    node.isLeaving = true
    #expect(node.steps() == (0..<6).map { .move($0, term: 3, to: "b") })
  }

  @Test("a closed shard that belongs to no other node is given up")
  func closedWithoutTarget() {
    for isAlone in [true, false] {
      var node = Node(shards: 1)
      if isAlone {
        node.isLeaving = true
        node.join("a", .leaving)
      } else {
        // The broker couldn't open it.
        node.join("b")
        node.pin(0, to: "a")
      }
      node.shard(0, of: "a", .held)
      node.leases[0]?.closed(3)
      #expect(node.steps() == [.free(0, term: 3)])
    }
  }

  @Test("a shard that the broker couldn't open is taken again later")
  func refused() {
    var node = Node(shards: 1)
    let later = Duration.seconds(1)
    node.allotment.refused(0, until: now + later)
    #expect(node.steps().isEmpty)
    #expect(node.allotment.deadlines == [now + later])
    #expect(node.steps(after: later) == [.take(0)])
    #expect(node.allotment.deadlines.isEmpty)
  }

  @Test("after it has joined a node waits before it takes shards that aren't left to it")
  func waiting() {
    var node = Node(shards: 2)
    let wait = Duration.milliseconds(250)
    node.allotment.wait(until: now + wait)
    #expect(node.steps().isEmpty)
    #expect(node.allotment.deadlines == [now + wait])
    // A shard released by a live node is taken without a wait.
    node.join("b", .leaving)
    node.shard(1, of: "b", .free)
    #expect(node.steps() == [.take(1)])
    #expect(node.steps(after: wait) == [.take(0), .take(1)])
    #expect(node.allotment.deadlines.isEmpty)
  }

  @Test("the session of an owner that the engine has forgotten is ended before its shard is taken")
  func forgotten() {
    var node = Node(shards: 1)
    node.shard(0, of: "b", .held)
    #expect(node.steps().isEmpty)
    node.directory.knowsAllLive = true
    guard case .endSession(let owner)? = node.steps().first else {
      Issue.record("the session of the owner isn't ended")
      return
    }
    #expect(owner.owner == "b" && owner.session == 1)
  }

  private var now: MonotonicTime { Self.now }
}
