import SluiceIO
import SluiceMQTT

/// Wills that a process publishes for connections that can't: those of processes that have ended, and those that a CONNECT cancelled although it then
/// failed to take over the session.
///
/// Belongs to its loop.
final class MQTTOrphanWills {
  typealias Publish = (MQTTConnect.Will, MQTTHub.Key, _ producer: UInt64, @escaping (Bool) -> Void) -> Void

  private let loop: any EventLoop
  private let publish: Publish
  private let isDue: (MQTTClaim, MQTTHub.Key) -> Bool
  private let done: (MQTTClaim, MQTTHub.Key) -> Void
  private var waiting: Set<MQTTClaim> = []

  /// - Parameters:
  ///   - publish: publishes a will, and reports whether no work is left.
  ///   - isDue: returns whether a will must still be published.
  ///   - done: called when a will is published, or can't be.
  init(
    on loop: any EventLoop, _ publish: @escaping Publish,
    isDue: @escaping (MQTTClaim, MQTTHub.Key) -> Bool, done: @escaping (MQTTClaim, MQTTHub.Key) -> Void
  ) {
    self.loop = loop
    self.publish = publish
    self.isDue = isDue
    self.done = done
  }

  /// Publishes a will after its delay; once, even if it is passed repeatedly.
  func take(_ will: MQTTRosterWill, of key: MQTTHub.Key) {
    guard waiting.insert(will.claim).inserted else { return }
    schedule(will, of: key, after: .seconds(Int64(will.delay)))
  }

  /// The client has reconnected.
  func drop(_ claim: MQTTClaim) { waiting.remove(claim) }

  private func schedule(_ will: MQTTRosterWill, of key: MQTTHub.Key, after delay: Duration) {
    _ = loop.schedule(after: delay) { [weak self] in
      guard let self, waiting.contains(will.claim), isDue(will.claim, key) else { return }
      guard let message = MQTTConnect.Will(roster: will.bytes) else { return finish(will.claim, key) }
      publish(message, key, will.claim.producer) { [weak self] isOver in
        if isOver { self?.finish(will.claim, key) } else { self?.schedule(will, of: key, after: .seconds(1)) }
      }
    }
  }

  private func finish(_ claim: MQTTClaim, _ key: MQTTHub.Key) {
    if waiting.remove(claim) != nil { done(claim, key) }
  }
}
