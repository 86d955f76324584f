import SluiceIO
import SluiceMQTT
import SluiceWire

/// What the connections of MQTT on one loop have in common, and the look at those of them that may have become quiet.
///
/// On its loop only.
// @unchecked: belongs to `loop`. Other threads only pass it on to jobs on that loop.
final class MQTTLoop: @unchecked Sendable {
  let hub: MQTTHub
  let rules: MQTTSessionRules.Shared
  let loop: any EventLoop
  let traffic: MQTTTraffic

  /// Connections that have had a turn since they were last looked at.
  private var active: [MQTTConnection] = []
  private var nextLook: TimerToken?
  /// In how many times ``MQTTLimits/quietAfter`` it comes.
  private var patience = 1
  private static let mostPatience = 16
  /// Connections whose turn ends with the loop's.
  @safe @exclusivity(unchecked) private var ending: [MQTTConnection] = []
  /// Whether something was told to the broker that it looks at in a turn of the loop.
  private var isBrokerDue = false
  /// Clients that were refused and whose CONNECT is awaited, in the order in which they came.
  private var refusals: [MQTTRefusal] = []

  init(_ hub: MQTTHub, _ rules: MQTTSessionRules.Shared, on loop: any EventLoop) {
    self.hub = hub
    self.rules = rules
    self.loop = loop
    traffic = hub.system.newTraffic()
    loop.addTurnParticipant(self)
  }

  /// Has a connection's turn ended at the end of the loop's, behind what the broker sends to other clients, unless it is ended before.
  func endTurnLater(_ connection: MQTTConnection) {
    guard !connection.isEndDue else { return }
    connection.isEndDue = true
    ending.append(connection)
  }

  /// The broker needs a turn of the loop, which may be at the end of this one.
  func brokerHasWork() { isBrokerDue = true }

  /// Has a connection looked at until it has become quiet, or can't.
  func watch(_ connection: MQTTConnection) {
    active.append(connection)
    if patience > 1 { loop.cancel(&nextLook) }
    patience = 1
    lookLater()
  }

  private func lookLater() {
    guard nextLook == nil, !active.isEmpty else { return }
    nextLook = loop.schedule(after: hub.limits.quietAfter * patience) { [self] in
      nextLook = nil
      let all = active
      // As long as all of them go on, each look comes later than the one before, so that few messages wait for one.
      patience = all.allSatisfy(\.hadTurn) ? min(2 * patience, Self.mostPatience) : 1
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
}

extension MQTTLoop: TurnParticipant {
  // Behind the broker's part of the turn, which takes part in turns since before there was a connection.
  func turnEnded() -> Bool {
    isBrokerDue = false
    // By index, which counts fewer references.
    var next = 0
    while next < ending.count {
      if ending[next].isEndDue { ending[next].endTurn() }
      next += 1
    }
    ending.removeAllInPlace()
    return isBrokerDue
  }
}
