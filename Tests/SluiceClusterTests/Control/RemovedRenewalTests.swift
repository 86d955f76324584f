import SluiceIO
import Testing

@testable import SluiceCluster

/// The engine removes a node's last message by its own clock, with renewals that another node hasn't seen.
@Suite("A node whose last message the engine has removed")
struct RemovedRenewalTests {
  /// One node's decisions, whose messages are stored at once.
  private final class Observer {
    var control: ClusterControl
    var now = MonotonicTime(nanoseconds: 1_000_000_000)
    private var sequence: UInt64 = 0

    init() {
      control = ClusterControl(
        ClusterOptions(name: "b", advertisedAddress: "b:7420", engine: []), writer: 2)
      control.watchBegan()
      hear(.cluster(ClusterRecord(shards: 8)))
      hear(
        .node(
          "a", NodeRecord(writer: 1, count: 1, session: 2, state: .live, address: "a:7420", version: "")))
      control.watchCurrent(at: now)
    }

    func hear(_ record: ControlRecord) {
      sequence += 1
      control.watched(record, sequence, isLast: true, at: now)
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
}
