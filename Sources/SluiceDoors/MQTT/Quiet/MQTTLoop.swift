import SluiceIO
import SluiceMQTT
import SluiceWire

/// State that the MQTT connections of one loop share, and the checks for quiet ones among them.
///
/// On its loop only.
// @unchecked: belongs to `loop`. Other threads only pass it on to jobs on that loop.
final class MQTTLoop: @unchecked Sendable {
  let hub: MQTTHub
  let rules: MQTTSessionRules.Shared
  let loop: any EventLoop
  let traffic: MQTTTraffic

  /// Connections to check: they have had a turn recently.
  private var active: [MQTTConnection] = []
  private var nextLook: TimerToken?
  /// The time until the next check, as a multiple of ``MQTTLimits/quietAfter``.
  private var patience = 1
  private static let mostPatience = 16
  /// Connections whose turn ends with the loop's.
  @safe @exclusivity(unchecked) private var ending: [MQTTConnection] = []
  /// Whether the broker has work for a turn of the loop.
  private var isBrokerDue = false
  /// Refused clients whose CONNECT is awaited, oldest first.
  private var refusals: [MQTTRefusal] = []

  init(_ hub: MQTTHub, _ rules: MQTTSessionRules.Shared, on loop: any EventLoop) {
    self.hub = hub
    self.rules = rules
    self.loop = loop
    traffic = hub.system.newTraffic()
    loop.addTurnParticipant(self)
  }

  /// Schedules the end of a connection's turn for the end of the loop's turn, after the broker's output to other clients. Has no effect if the turn ends
  /// earlier.
  func endTurnLater(_ connection: MQTTConnection) {
    guard !connection.isEndDue else { return }
    connection.isEndDue = true
    ending.append(connection)
  }

  /// Notes that the broker needs a turn of the loop, for which the end of this one suffices.
  func brokerHasWork() { isBrokerDue = true }

  /// Checks a connection regularly until it is packed, or turns out to be impossible to pack.
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
      // While all connections stay active, each check is later than the previous one, so that checks delay few messages.
      patience = all.allSatisfy(\.hadTurn) ? min(2 * patience, Self.mostPatience) : 1
      active = all.filter { $0.staysActive() }
      lookLater()
    }
  }

  /// Adds a refused client that waits for its CONNECT. If too many wait, it replaces the oldest on this loop.
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
  // After the broker's part of the turn, which was registered before there was a connection.
  func turnEnded() -> Bool {
    isBrokerDue = false
    // By index, which needs fewer reference counts.
    var next = 0
    while next < ending.count {
      if ending[next].isEndDue { ending[next].endTurn() }
      next += 1
    }
    ending.removeAllInPlace()
    return isBrokerDue
  }
}
