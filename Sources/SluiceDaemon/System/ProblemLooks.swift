import SluiceBroker
import SluiceIO

/// Has a broker look for its problems regularly, where no admin listener does, so that a client that asks for them is told how much counters have grown within
/// the last minute: rejected logins, missed records and others.
final class ProblemLooks: Sendable {
  /// A look costs as much as a client that asks for problems.
  private static let interval = Duration.seconds(20)

  private let broker: Broker
  private let loop: EpollLoop

  init(_ broker: Broker, on loop: EpollLoop) {
    self.broker = broker
    self.loop = loop
  }

  /// Looks now, and from now on. From any thread.
  func start() {
    loop.execute { [self] in look() }
  }

  private func look() {
    _ = loop.schedule(after: Self.interval) { [weak self] in self?.look() }
    broker.lookForProblems()
  }
}
