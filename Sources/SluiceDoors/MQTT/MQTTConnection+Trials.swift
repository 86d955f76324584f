import SluiceIO
import SluiceMQTT
import SluiceWire

/// That a subscription is opened again later.
final class MQTTTrial {
  private static let firstDelay = Duration.milliseconds(250)
  private static let longestDelay = Duration.seconds(5)
  /// Where the broker has refused it for what it is.
  private static let refusedDelay = Duration.seconds(60)

  private var count = 0

  /// How long the next attempt waits.
  func nextDelay(isPassing: Bool) -> Duration {
    defer { count += 1 }
    return isPassing ? min(Self.firstDelay * (1 << min(count, 8)), Self.longestDelay) : Self.refusedDelay
  }
}

// Subscriptions that the broker can't open, or has ended. One that the client has is opened again where it is, until it stands, as long as the session has it.
extension MQTTConnection {
  /// A subscription can't be opened, or isn't open any more.
  ///
  /// - Parameter isPassing: whether the cause is one that passes by itself.
  func refused(_ number: UInt16, _ error: MQTTError, isPassing: Bool) {
    guard let subscription = subscriptions[number] else { return }
    guard subscription.stands else { return answer(number, error) }
    let trial = subscription.trial ?? MQTTTrial()
    // Once, however often it is tried.
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
    // The client is told so if it has asked for it meanwhile.
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
