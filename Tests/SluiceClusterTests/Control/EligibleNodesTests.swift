import SluiceIO
import Testing

@testable import SluiceCluster

@Suite("Which nodes may own shards")
struct EligibleNodesTests {
  private struct Cluster {
    var directory = Directory()
    private var sequence: UInt64 = 0

    mutating func set(_ record: ControlRecord, at milliseconds: Int = 0) {
      sequence += 1
      let now = MonotonicTime(nanoseconds: UInt64(1_000 + milliseconds) * 1_000_000)
      _ = directory.apply(record, sequence, at: now)
    }

    /// By default a node's broker has ten times the number of its session.
    mutating func join(
      _ name: String, session: UInt64, _ state: NodeRecord.State = .live, broker: UInt64? = nil,
      at milliseconds: Int = 0
    ) {
      let record = NodeRecord(
        writer: session, count: 1, session: session, state: state, address: "\(name):1", version: "1",
        broker: broker ?? 10 * session)
      set(.node(name, record), at: milliseconds)
    }

    mutating func reach(_ name: String, broker: UInt64) {
      set(.reach(name, ReachRecord(broker: broker, by: "x")))
    }

    var eligible: [String] { directory.eligible.sorted() }
    var unreached: [String] { directory.unreached.sorted() }
  }

  @Test("an only node needs no other one that reaches it")
  func alone() {
    var cluster = Cluster()
    cluster.join("a", session: 1)
    #expect(cluster.eligible == ["a"] && cluster.unreached == [])
    #expect(cluster.directory.lastJoin == nil)
  }

  @Test("a node that joins gets no shards until another one has reached its present broker")
  func joins() {
    var cluster = Cluster()
    cluster.join("a", session: 1)
    cluster.reach("a", broker: 10)
    cluster.join("b", session: 2)
    #expect(cluster.eligible == ["a"] && cluster.unreached == ["b"])
    cluster.reach("b", broker: 19)
    #expect(cluster.eligible == ["a"])
    cluster.reach("b", broker: 20)
    #expect(cluster.eligible == ["a", "b"] && cluster.unreached == [])
    // It is restarted.
    cluster.join("b", session: 3)
    #expect(cluster.eligible == ["a"] && cluster.unreached == ["b"])
  }

  @Test("while no node is reached, the eldest has what there is; one that can be reached has it then")
  func eldest() {
    var cluster = Cluster()
    cluster.join("b", session: 1)
    cluster.join("a", session: 2, at: 300)
    #expect(cluster.eligible == ["b"] && cluster.unreached == ["a", "b"])
    #expect(cluster.directory.lastJoin == MonotonicTime(nanoseconds: 1_300_000_000))
    cluster.reach("a", broker: 20)
    #expect(cluster.eligible == ["a"] && cluster.directory.lastJoin == nil)
  }

  @Test("the last living node takes over whether or not it was ever reached")
  func last() {
    var cluster = Cluster()
    cluster.join("a", session: 1)
    cluster.reach("a", broker: 10)
    cluster.join("b", session: 2)
    cluster.join("a", session: 1, .ended)
    #expect(cluster.eligible == ["b"] && cluster.unreached == [])
  }

  @Test("with a node of a version that checks nothing, all nodes may own shards")
  func earlier() {
    var cluster = Cluster()
    cluster.join("a", session: 1, broker: 0)
    cluster.join("b", session: 2)
    #expect(cluster.eligible == ["a", "b"] && cluster.unreached == [])
  }

  @Test("a drained node has shards where no other one may have them")
  func drained() {
    var cluster = Cluster()
    cluster.join("a", session: 1)
    cluster.reach("a", broker: 10)
    cluster.join("b", session: 2)
    cluster.set(.drain("a", true))
    #expect(Placement(cluster.directory).nodes == ["a"])
    cluster.reach("b", broker: 20)
    #expect(Placement(cluster.directory).nodes == ["b"])
  }

  @Test("records of what is reached survive being written and read")
  func text() {
    let record = ControlRecord.reach("a", ReachRecord(broker: 7, by: "b"))
    #expect(record.subject == "ctl.reach.a")
    #expect(ControlRecord(subject: record.subject, payload: record.payload, sequence: 5) == record)
    #expect(ControlRecord(subject: record.subject, payload: "", sequence: 5) == record.absent)
    let node = ControlRecord.node(
      "a",
      NodeRecord(writer: 1, count: 2, session: 3, state: .live, address: "a:1", version: "1", broker: 4))
    #expect(ControlRecord(subject: node.subject, payload: node.payload, sequence: 5) == node)
  }
}
