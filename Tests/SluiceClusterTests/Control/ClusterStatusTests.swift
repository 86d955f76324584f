import SluiceIO
import Testing

@testable import SluiceCluster

@Suite("What a node tells of the others")
struct ClusterStatusTests {
  private static let start = MonotonicTime(nanoseconds: 1_000_000_000)

  private static func record(_ writer: UInt64, _ state: NodeRecord.State = .live) -> NodeRecord {
    NodeRecord(writer: writer, count: 1, session: writer, state: state, address: "h:7420", version: "")
  }

  /// The states of the nodes by name, `silence` after the last message of each.
  private func states(after silence: Duration) -> [String: ClusterStatus.Node.State] {
    var control = ClusterControl(
      ClusterOptions(name: "b", advertisedAddress: "b:7420", engine: []), writer: 2)
    control.watchBegan()
    control.observed(.cluster(ClusterRecord(shards: 8)), 1, at: Self.start)
    control.observed(.node("a", Self.record(1)), 2, at: Self.start)
    control.observed(.node("b", Self.record(2)), 3, at: Self.start)
    control.observed(.node("c", Self.record(3, .ended)), 4, at: Self.start)
    control.observed(.drain("d", true), 5, at: Self.start)
    control.observed(.node("d", Self.record(4)), 6, at: Self.start)
    control.watchCurrent(at: Self.start)
    let status = ClusterStatus(
      control, problems: [], EngineHealth(), isConnected: true, server: "", isUnsafe: false,
      at: Self.start + silence)
    return Dictionary(uniqueKeysWithValues: status.nodes.map { ($0.name, $0.state) })
  }

  @Test("a node whose name another process has says so, and where that is")
  func name() {
    var control = ClusterControl(
      ClusterOptions(name: "b", advertisedAddress: "b:7420", engine: []), writer: 2)
    control.watchBegan()
    control.observed(.cluster(ClusterRecord(shards: 8)), 1, at: Self.start)
    control.observed(.node("b", Self.record(9)), 2, at: Self.start)
    control.watchCurrent(at: Self.start)
    func unreadiness() -> String? {
      ClusterStatus(
        control, problems: [], EngineHealth(), isConnected: true, server: "", isUnsafe: false, at: Self.start
      ).unreadiness
    }
    #expect(
      unreadiness()
        == "the node hasn't joined the cluster: another process has the name b, at h:7420; it joins when that has ended. Two nodes that run need two names (--node)"
    )
    control.observed(.node("b", Self.record(9, .ended)), 3, at: Self.start)
    #expect(unreadiness() == "the node hasn't joined the cluster yet")
  }

  @Test("a node without a sign for longer than a lease, whose session no node could end, isn't called live")
  func silence() {
    let known: [String: ClusterStatus.Node.State] = ["a": .live, "b": .live, "c": .ended, "d": .drained]
    #expect(states(after: .zero) == known)
    // Another node may be about to end its session.
    #expect(states(after: LeaseTimes().lease) == known)
    // This node is live, whether its messages reach the engine or not.
    #expect(states(after: .seconds(25)) == ["a": .silent, "b": .live, "c": .ended, "d": .silent])
  }
}
