import SluiceIO
import SluiceMQTT
import Synchronization

/// Maintenance of a roster, which its processes divide by session or leave to one of them: they detect processes that have ended, end expired sessions,
/// publish the wills of ended processes, and trim the log.
///
/// Belongs to the log's loop.
final class MQTTRosterCare {
  private static let tickInterval = Duration.milliseconds(250)
  private static let sweepInterval = Duration.seconds(10)

  private let log: MQTTRosterLog
  /// Nil for a broker of one node.
  private let cluster: DoorCluster?
  let wills: MQTTOrphanWills
  private var watch = MQTTProcessWatch()
  private var nextSweep: MonotonicTime
  /// How many expired sessions this process has ended. Readable on any thread.
  let expiredCount = Atomic(0)

  /// - Parameter publish: publishes a will, and reports whether no work is left.
  init(_ log: MQTTRosterLog, _ cluster: DoorCluster?, publish: @escaping MQTTOrphanWills.Publish) {
    self.log = log
    self.cluster = cluster
    nextSweep = log.loop.now + Self.sweepInterval
    wills = MQTTOrphanWills(
      on: log.loop, publish,
      isDue: { [log] claim, key in
        log.roster.entries[key]?.due.contains { $0.claim == claim } ?? false
      },
      done: { [log] claim, key in log.write(.willDone(claim), key) })
  }

  /// The processes whose nodes are alive, as far as this one knows.
  private var living: [UInt64] { watch.living(among: log.roster.processes.keys) }

  /// Whether this process does the work that one process does for all.
  var isFirst: Bool { log.isLoaded && living.first == log.process }

  /// Starts the periodic maintenance.
  ///
  /// - Parameter more: called as well, while the roster is up to date.
  func begin(_ more: @escaping () -> Void) {
    let interval = cluster == nil ? Self.sweepInterval : Self.tickInterval
    _ = log.loop.schedule(after: interval) { [weak self] in
      guard let self else { return }
      begin(more)
      guard log.isLoaded else { return watch.reset() }
      lookForMissing()
      more()
      sweep()
      keepShort()
    }
  }

  private func lookForMissing() {
    guard let cluster else { return }
    let now = log.loop.now
    guard let nodes = cluster.otherNodes(now) else { return watch.reset() }
    let others = log.roster.processes.lazy.filter { [process = log.process] in $0.key != process }
    watch.look(at: others.map { ($0.key, $0.value.node) }, nodes, now: now)
    guard living.first == log.process else { return }
    for gone in watch.takeDue(now: now) { log.write(.gone(process: gone, time: log.loop.wallClock)) }
  }

  /// A process has ended.
  func forget(_ process: UInt64) { watch.forget(process) }

  /// Ends expired sessions.
  private func sweep() {
    guard log.loop.now >= nextSweep else { return }
    nextSweep = log.loop.now + Self.sweepInterval
    let living = living
    for (key, leftAt) in log.roster.entries.expired(at: log.loop.wallClock)
    where MQTTRoster.responsible(for: key, among: living) == log.process {
      expiredCount.add(1, ordering: .relaxed)
      log.write(.expired(leftAt: leftAt), key)
    }
  }

  /// Trims the log once most of it is outdated.
  func keepShort() {
    if log.isLong, living.first == log.process { log.shorten() }
  }

  /// Publishes the wills of ended processes for which this one is responsible.
  func mourn() {
    // Unread records of the log may report that a will was published.
    guard log.isLoaded else { return }
    let living = living
    for key in log.roster.bereaved {
      // A live process publishes its own wills.
      let orphaned = (log.roster.entries[key]?.due ?? []).filter {
        log.roster.processes[$0.claim.process] == nil
      }
      guard !orphaned.isEmpty, MQTTRoster.responsible(for: key, among: living) == log.process else {
        continue
      }
      for will in orphaned { wills.take(will, of: key) }
    }
  }
}
