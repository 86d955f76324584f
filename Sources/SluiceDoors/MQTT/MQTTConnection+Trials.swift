import SluiceIO
import SluiceMQTT
import SluiceWire

/// The retries of a subscription.
final class MQTTTrial {
  private static let firstDelay = Duration.milliseconds(250)
  private static let longestDelay = Duration.seconds(5)
  /// The delay if the broker has refused the subscription for a lasting reason.
  private static let refusedDelay = Duration.seconds(60)

  private var count = 0

  /// Returns the delay until the next attempt.
  func nextDelay(isPassing: Bool) -> Duration {
    defer { count += 1 }
    return isPassing ? min(Self.firstDelay * (1 << min(count, 8)), Self.longestDelay) : Self.refusedDelay
  }
}

// Subscriptions that the broker can't open, or has ended. If the client already has the subscription, the gateway retries at the same position until it is
// open or the session removes it.
extension MQTTConnection {
  /// Handles a subscription that can't be opened, or was closed by the broker.
  ///
  /// - Parameter isPassing: whether the cause is temporary.
  func refused(_ number: UInt16, _ error: MQTTError, isPassing: Bool) {
    guard let subscription = subscriptions[number] else { return }
    guard subscription.stands else { return answer(number, error) }
    let trial = subscription.trial ?? MQTTTrial()
    // Reports it once for all attempts.
    if subscription.trial == nil, let filter = session.filter(of: number) {
      hub.noteWaiting(filter.description, error.message, of: key)
    }
    var again = MQTTSubscriptionFeeds(
      isUnlimited: subscription.isUnlimited, keepsCursors: subscription.keepsCursors,
      start: subscription.start
    )
    again.goOn(as: subscription, at: positions(of: subscription))
    again.trial = trial
    cancelFeeds(of: number)
    subscriptions[number] = again
    // If the client has repeated its SUBSCRIBE meanwhile, SUBACK contains the error.
    play { session, output, perform in
      session.subscribed(number, error, isKept: true, output: &output, perform)
    }
    _ = loop.schedule(after: trial.nextDelay(isPassing: isPassing)) { [weak self, weak trial] in
      guard let self, let trial, phase == .open, subscriptions[number]?.trial === trial else { return }
      openStreams(of: number)
      endTurn()
    }
  }
}
