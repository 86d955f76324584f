import SluiceIO
import Testing

@testable import SluiceCluster

/// Calls a mutating method within an expectation.
private func mutate<Value, Result>(_ value: inout Value, _ body: (inout Value) -> Result) -> Result {
  body(&value)
}

@Suite("A node's session and a shard's lease as values")
struct LeaseTests {
  private static func time(_ milliseconds: Int) -> MonotonicTime {
    MonotonicTime(nanoseconds: UInt64(10_000 + milliseconds) * 1_000_000)
  }

  private static func record(
    _ count: UInt64, writer: UInt64 = 7, session: UInt64 = 5, _ state: NodeRecord.State = .live,
    by: String? = nil
  ) -> NodeRecord {
    NodeRecord(
      writer: writer, count: count, session: session, state: state, address: "a:1", version: "1", endedBy: by)
  }

  private static func entry(_ record: NodeRecord, _ sequence: UInt64, heard: Int) -> NodeEntry {
    NodeEntry(
      sequence: sequence, record: record, heard: time(heard), lastSign: time(heard), since: time(heard))
  }

  /// A member since 0, whose first message was sent at 0 and acknowledged at 10.
  private static func member() -> NodeSession {
    var session = NodeSession(writer: 7, times: LeaseTimes())
    session.sending(1, at: time(0))
    #expect(mutate(&session) { $0.observed(record(1), at: time(10)) } == [.joined(5)])
    return session
  }

  @Test("a lease counts from when the renewal was sent, and is renewed in time")
  func renewal() {
    var session = Self.member()
    let known = Self.entry(Self.record(1), 5, heard: 10)
    #expect(session.isValid(at: Self.time(1_699)))
    #expect(!session.isValid(at: Self.time(1_700)))
    #expect(session.wantedState(known, hasShards: true, at: Self.time(499)) == nil)
    #expect(session.wantedState(known, hasShards: true, at: Self.time(500)) == .live)
    session.sending(2, at: Self.time(500))
    #expect(session.wantedState(known, hasShards: true, at: Self.time(600)) == nil)
    // It is stored late: the lease counts from the time of sending.
    #expect(mutate(&session) { $0.observed(Self.record(2), at: Self.time(1_600)) } == [])
    #expect(session.isValid(at: Self.time(2_199)))
    #expect(!session.isValid(at: Self.time(2_200)))
  }

  @Test("a lease that isn't renewed is suspended once, and goes on when the engine confirms it")
  func suspension() {
    var session = Self.member()
    #expect(mutate(&session) { $0.expire(at: Self.time(1_699)) } == [])
    #expect(mutate(&session) { $0.expire(at: Self.time(1_700)) } == [.suspended])
    #expect(mutate(&session) { $0.expire(at: Self.time(1_800)) } == [])
    // A renewal that was sent too long ago confirms nothing.
    session.sending(2, at: Self.time(500))
    #expect(mutate(&session) { $0.observed(Self.record(2), at: Self.time(9_000)) } == [])
    session.sending(3, at: Self.time(9_000))
    #expect(mutate(&session) { $0.observed(Self.record(3), at: Self.time(9_010)) } == [.resumed])
    #expect(session.session == 5)
  }

  @Test("another process's message ends the session, and the next one begins anew")
  func loss() {
    var session = Self.member()
    #expect(
      mutate(&session) { $0.observed(Self.record(9, writer: 8, .ended, by: "b"), at: Self.time(100)) } == [
        .lost(by: "b")
      ])
    #expect(!session.isValid(at: Self.time(100)))
    let ended = Self.entry(Self.record(9, writer: 8, .ended, by: "b"), 6, heard: 100)
    #expect(session.wantedState(ended, hasShards: false, at: Self.time(100)) == .live)
    // A reply to a renewal of the former session doesn't count for the new one.
    #expect(mutate(&session) { $0.observed(Self.record(1), at: Self.time(110)) } == [])
    session.sending(4, at: Self.time(120))
    #expect(mutate(&session) { $0.observed(Self.record(4, session: 7), at: Self.time(130)) } == [.joined(7)])
  }

  @Test("a name that is in use is waited for until its lease has run out")
  func sameName() {
    let session = NodeSession(writer: 7, times: LeaseTimes())
    let other = Self.entry(Self.record(1, writer: 8), 5, heard: 0)
    #expect(session.wantedState(other, hasShards: false, at: Self.time(1_999)) == nil)
    #expect(session.wantedState(other, hasShards: false, at: Self.time(2_000)) == .live)
  }

  @Test("a message that the engine's clock has removed ends nothing while the lease holds")
  func removal() {
    var session = Self.member()
    #expect(mutate(&session) { $0.observed(nil, at: Self.time(1_000)) } == [])
    #expect(mutate(&session) { $0.observed(nil, at: Self.time(2_000)) } == [.lost(by: nil)])
  }

  @Test("leaving gives shards away before the session ends")
  func leaving() {
    var session = Self.member()
    session.isLeaving = true
    var known = Self.entry(Self.record(1), 5, heard: 10)
    #expect(session.wantedState(known, hasShards: true, at: Self.time(20)) == .leaving)
    session.sending(2, at: Self.time(20))
    #expect(mutate(&session) { $0.observed(Self.record(2, .leaving), at: Self.time(30)) } == [])
    known = Self.entry(Self.record(2, .leaving), 6, heard: 30)
    #expect(session.wantedState(known, hasShards: true, at: Self.time(40)) == nil)
    #expect(session.wantedState(known, hasShards: false, at: Self.time(40)) == .ended)
    #expect(mutate(&session) { $0.observed(Self.record(3, .ended), at: Self.time(50)) } == [.left])
    #expect(session.wantedState(known, hasShards: false, at: Self.time(9_000)) == nil)
  }

  private static func shard(
    _ state: ShardRecord.State, writer: UInt64 = 7, session: UInt64 = 5, term: UInt64 = 9
  ) -> ShardRecord {
    ShardRecord(writer: writer, count: 1, state: state, owner: "a", session: session, term: term)
  }

  @Test("a shard is taken, held, closed and released in this order")
  func shard() {
    var lease = ShardLeaseState()
    func observed(_ record: ShardRecord?) -> [ShardLeaseState.Change] {
      lease.observed(record, writer: 7, session: 5)
    }
    #expect(observed(Self.shard(.held, writer: 8)) == [])
    #expect(observed(Self.shard(.held)) == [.gained(term: 9)])
    #expect(observed(Self.shard(.held)) == [])
    let opened = [lease.opened(8), lease.opened(9), lease.opened(9)]
    #expect(opened == [false, true, false])
    #expect(observed(Self.shard(.moving)) == [.closing(term: 9, successor: nil)])
    lease.closed(8)
    #expect(!lease.isReleasing)
    lease.closed(9)
    #expect(lease.isReleasing)
    #expect(observed(Self.shard(.free)) == [.released])
    #expect(lease.term == nil)
  }

  @Test("a closed shard is given away by a record of a later term; any other one ends the term")
  func givenShard() {
    for (record, change) in [
      (Self.shard(.held, writer: 8, term: 10), ShardLeaseState.Change.released),
      (Self.shard(.held, writer: 8, term: 9), .lost(term: 9)), (nil, .lost(term: 9)),
    ] {
      var lease = ShardLeaseState()
      _ = lease.observed(Self.shard(.held), writer: 7, session: 5)
      _ = lease.observed(Self.shard(.moving), writer: 7, session: 5)
      lease.closed(9)
      let changes = lease.observed(record, writer: 7, session: 5)
      #expect(changes == [change])
      #expect(lease.term == nil)
    }
  }

  @Test("another owner, or another session, ends a term")
  func lostShard() {
    for record in [Self.shard(.held, writer: 8, term: 10), Self.shard(.held, session: 6), nil] {
      var lease = ShardLeaseState()
      _ = lease.observed(Self.shard(.held), writer: 7, session: 5)
      let lost = lease.observed(record, writer: 7, session: 5)
      #expect(lost == [.lost(term: 9)])
      let again = lease.lose()
      #expect(again == [])
    }
  }

  @Test("records are what they were when they are read again")
  func records() {
    let records: [ControlRecord] = [
      .cluster(ClusterRecord(shards: 64)), .node("a", Self.record(3, .leaving)),
      .node("b-1_x", Self.record(3, .ended, by: "c")), .shard(12, Self.shard(.moving)), .drain("a", true),
      .drain("a", false), .pin(3, "b"), .pin(3, nil), .node("a", nil), .shard(1, nil),
    ]
    for record in records {
      #expect(ControlRecord(subject: record.subject, payload: record.payload, sequence: 77) == record)
    }
    let first = ControlRecord.shard(1, Self.shard(.held, term: 0))
    #expect(
      ControlRecord(subject: "ctl.shard.1", payload: first.payload, sequence: 77)
        == .shard(1, Self.shard(.held, term: 77)))
    for subject in ["", "ctl", "ctl.", "ctl.shard.x", "ctl.other.1", "ctl.node.a.b", "other.node.a"] {
      #expect(ControlRecord(subject: subject, payload: "", sequence: 1) == nil)
    }
    #expect(ControlRecord(subject: "ctl.cluster", payload: "shards=0", sequence: 1) == nil)
    #expect(ControlRecord(subject: "ctl.node.a", payload: "writer=x", sequence: 1) == .node("a", nil))
  }
}
