import Synchronization

/// Whether a cluster's sessions have reached a limit, for all loops of a process. From any thread.
struct MQTTClusterRoom: ~Copyable, Sendable {
  private let mayBegin = Atomic(true)
  private let mayGrow = Atomic(true)
  /// Sessions of the cluster whose clients are away.
  let awayCount = Atomic(0)
  /// Sessions that this process has found to be expired.
  let expiredCount = Atomic(0)

  /// Whether there is room for more sessions, or for more in one.
  func hasRoom(growing: Bool) -> Bool {
    growing ? mayGrow.load(ordering: .relaxed) : mayBegin.load(ordering: .relaxed)
  }

  /// All sessions count that.
  func note(_ roster: MQTTRoster, _ limits: MQTTLimits) {
    let tally = roster.tally
    awayCount.store(roster.awayCount, ordering: .relaxed)
    mayBegin.store(limits.haveRoom(growing: false, beside: tally), ordering: .relaxed)
    mayGrow.store(limits.haveRoom(growing: true, beside: tally), ordering: .relaxed)
  }
}
