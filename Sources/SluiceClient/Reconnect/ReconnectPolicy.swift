import SluiceIO

/// Whether and how a ``Client`` comes back after its connection is lost.
///
/// After a loss it waits a while, then tries the servers one after the other, beginning behind the one that it had. When none answers, it
/// waits longer, and so on: ``initialDelay``, ``multiplier`` times that, up to ``maximumDelay``; of each a random part is left off, so that
/// the clients of a broker that comes back don't all come at the same moment.
///
/// ```swift
/// var options = ClientOptions()
/// options.reconnect?.giveUpAfter = .seconds(60)
/// options.reconnect = nil  // The first lost connection is the end.
/// ```
public struct ReconnectPolicy: Hashable, Sendable {
  /// The first wait. From 0 up. Default: 100 ms.
  public var initialDelay = Duration.milliseconds(100)
  /// What each wait is multiplied by for the next. From 1 up. Default: 2.
  public var multiplier = 2.0
  /// The longest wait. Default: 10 s.
  public var maximumDelay = Duration.seconds(10)
  /// How much of a wait may be left off by chance: 0 for nothing, 1 for all of it. Default: 0.5.
  public var jitter = 0.5
  /// How long after the loss the client gives up; an attempt that is under way by then is still waited for. Default: nil, never.
  public var giveUpAfter: Duration?
  /// The most attempts after a loss, each server counted. From 1 up. Default: nil, as many as it takes.
  public var attempts: Int?
  /// How many times in a row the client's credentials may be refused after a loss, by some of the servers in each round, before the client gives
  /// up; each time a provider is asked for others. Before there was a connection, it is once. From 1 up. Default: 3.
  public var refusals = 3
  /// Whether it begins with a server chosen by chance rather than the first, so that many clients spread themselves.
  /// Default: false.
  public var startsAnywhere = false
  /// Whether connecting for the first time goes on in the same way. Default: false: then each server is tried once, and `connect`
  /// fails when none answers.
  public var includesFirst = false

  public init() {}

  /// The wait before a round of attempts, of which so many were in vain, without chance.
  func delay(round: Int) -> Duration {
    let longest = Double(maximumDelay.clampedNanoseconds)
    var delay = Double(max(initialDelay, .zero).clampedNanoseconds)
    for _ in 0..<round where delay < longest { delay *= max(1, multiplier) }
    return .nanoseconds(Int64(max(0, min(delay, longest))))
  }
}
