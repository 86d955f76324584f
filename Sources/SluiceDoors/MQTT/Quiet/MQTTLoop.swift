import SluiceIO
import SluiceMQTT
import Synchronization

/// What the connections of MQTT on one loop have in common, and the look at those of them that may have become quiet.
///
/// On its loop only.
// @unchecked: belongs to `loop`. Other threads only pass it on to jobs on that loop.
final class MQTTLoop: @unchecked Sendable {
  let hub: MQTTHub
  let rules: MQTTSessionRules.Shared
  let loop: any EventLoop

  /// Connections that have had a turn since they were last looked at.
  private var active: [MQTTConnection] = []
  private var isLooking = false
  /// Clients that were refused and whose CONNECT is awaited, in the order in which they came.
  private var refusals: [MQTTRefusal] = []

  init(_ hub: MQTTHub, _ rules: MQTTSessionRules.Shared, on loop: any EventLoop) {
    self.hub = hub
    self.rules = rules
    self.loop = loop
  }

  /// Has a connection looked at until it has become quiet, or can't.
  func watch(_ connection: MQTTConnection) {
    active.append(connection)
    lookLater()
  }

  private func lookLater() {
    guard !isLooking, !active.isEmpty else { return }
    isLooking = true
    _ = loop.schedule(after: hub.limits.quietAfter) { [self] in
      isLooking = false
      let all = active
      active = all.filter { $0.staysActive() }
      lookLater()
    }
  }

  /// Has a client that was refused wait for its CONNECT; if too many do, in the place of the one that has waited longest here.
  ///
  /// - Returns: whether there is room.
  func add(_ refusal: MQTTRefusal) -> Bool {
    if hub.countRefusal(1) > MQTTRefusal.limit {
      guard let oldest = refusals.first else {
        hub.countRefusal(-1)
        return false
      }
      oldest.end()
    }
    refusals.append(refusal)
    return true
  }

  func remove(_ refusal: MQTTRefusal) {
    guard let index = refusals.firstIndex(where: { $0 === refusal }) else { return }
    refusals.remove(at: index)
    hub.countRefusal(-1)
  }

  /// Those of all loops. From any thread.
  final class Table: Sendable {
    private let loops = Mutex<[ObjectIdentifier: MQTTLoop]>([:])

    /// That of a loop, which is made if there is none.
    func find(_ loop: any EventLoop, _ make: () -> MQTTLoop) -> MQTTLoop {
      loops.withLock { loops in
        let found = loops[ObjectIdentifier(loop)] ?? make()
        loops[ObjectIdentifier(loop)] = found
        return found
      }
    }
  }
}
