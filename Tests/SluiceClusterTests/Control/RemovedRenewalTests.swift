import SluiceIO
import Testing

@testable import SluiceCluster

/// The engine removes a node's last message by its own clock, including renewals that another node hasn't seen.
@Suite("A node whose last message the engine has removed")
struct RemovedRenewalTests {
  /// The decisions of one node, whose messages are stored immediately.
  private final class Observer {
    var control: ClusterControl
    var now = MonotonicTime(nanoseconds: 1_000_000_000)
    private var sequence: UInt64 = 0

    init(hearsOther: Bool = true) {
      control = ClusterControl(
        ClusterOptions(name: "b", advertisedAddress: "b:7420", engine: []), writer: 2)
      control.watchBegan()
      hear(.cluster(ClusterRecord(shards: 8)))
      if hearsOther {
        hear(
          .node(
            "a", NodeRecord(writer: 1, count: 1, session: 2, state: .live, address: "a:7420", version: "")))
      }
      control.watchCurrent(at: now)
    }

    func hear(_ record: ControlRecord) {
      sequence += 1
      control.observed(record, sequence, at: now)
    }

    /// - Returns: the subjects of its writes, in order.
    func subjects(for duration: Duration) -> [String] {
      var subjects: [String] = []
      let end = now + duration
      while now < end {
        for case .write(let write) in control.takeActions(at: now) {
          subjects.append(write.record.subject)
          sequence += 1
          control.finished(write.number, .stored(sequence), at: now)
        }
        now = now + .milliseconds(10)
      }
      return subjects
    }

    /// - Returns: whether the other node's session was ended meanwhile.
    func run(for duration: Duration) -> Bool {
      let end = now + duration
      while now < end {
        for case .write(let write) in control.takeActions(at: now) {
          if write.record.subject == "ctl.node.a" { return true }
          sequence += 1
          control.finished(write.number, .stored(sequence), at: now)
        }
        now = now + .milliseconds(10)
      }
      return false
    }
  }

  @Test("its silence counts from the removal")
  func silence() {
    let observer = Observer()
    #expect(!observer.run(for: .milliseconds(1_900)))
    observer.hear(.node("a", nil))
    #expect(!observer.run(for: LeaseTimes().lease - .milliseconds(20)))
    #expect(observer.run(for: .milliseconds(500)))
  }

  @Test("without a removal it counts from the last message")
  func noRemoval() {
    let observer = Observer()
    #expect(!observer.run(for: LeaseTimes().lease - .milliseconds(20)))
    #expect(observer.run(for: .milliseconds(500)))
  }

  /// The other node has all shards and is paused: its next renewal would still be stored.
  @Test(
    "a node whose messages are gone keeps its shards until its session was ended", arguments: [true, false])
  func forgotten(hearsOther: Bool) {
    let observer = Observer(hearsOther: hearsOther)
    for shard in 0..<8 {
      let record = ShardRecord(writer: 1, count: 2, state: .held, owner: "a", session: 2, term: 0)
      observer.hear(.shard(shard, record))
    }
    if hearsOther {
      observer.hear(.node("a", nil))
    }
    let subjects = observer.subjects(for: .seconds(5)).filter { $0 != "ctl.node.b" }
    #expect(subjects.first == "ctl.node.a")
    #expect(subjects.dropFirst().allSatisfy { $0.hasPrefix("ctl.shard.") })
    #expect(subjects.count > 1)
  }

  @Test("that the leader has no message of a node doesn't free its shards")
  func cleared() {
    var directory = Directory()
    let now = MonotonicTime(nanoseconds: 1_000_000_000)
    let node = NodeRecord(writer: 1, count: 1, session: 2, state: .live, address: "a:7420", version: "")
    let shard = ShardRecord(writer: 1, count: 2, state: .held, owner: "a", session: 2, term: 0)
    _ = directory.apply(.node("a", node), 2, at: now)
    _ = directory.apply(.shard(0, shard), 3, at: now)
    directory.knowsAllLive = true
    directory.clear(.node("a", nil), at: now)
    #expect(directory.owner(of: 0)?.owner == "a")
  }
}
