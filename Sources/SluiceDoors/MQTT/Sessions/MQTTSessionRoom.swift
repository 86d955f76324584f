import Synchronization

/// Whether all sessions together have reached a limit, for all loops of a process. Usable from any thread.
struct MQTTSessionRoom: ~Copyable, Sendable {
  private let mayBegin = Atomic(true)
  private let mayGrow = Atomic(true)
  /// Sessions without a connection.
  let awayCount = Atomic(0)

  /// Returns whether there is room for further sessions, or for the growth of one.
  func hasRoom(growing: Bool) -> Bool {
    growing ? mayGrow.load(ordering: .relaxed) : mayBegin.load(ordering: .relaxed)
  }

  /// Updates the counts from the roster.
  func note(_ roster: MQTTRoster, _ limits: MQTTLimits) {
    let tally = roster.tally
    awayCount.store(roster.awayCount, ordering: .relaxed)
    mayBegin.store(limits.haveRoom(growing: false, beside: tally), ordering: .relaxed)
    mayGrow.store(limits.haveRoom(growing: true, beside: tally), ordering: .relaxed)
  }
}
