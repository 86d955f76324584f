import SluiceBroker
import SluiceIO

/// Makes a broker look for its problems regularly if no admin listener does. Only then can a client that requests problems see the growth of counters within
/// the last minute, such as rejected logins and missed records.
final class ProblemLooks: Sendable {
  /// A look costs as much as a client's request for problems.
  private static let interval = Duration.seconds(20)

  private let broker: Broker
  private let loop: EpollLoop

  init(_ broker: Broker, on loop: EpollLoop) {
    self.broker = broker
    self.loop = loop
  }

  /// Looks now, and then regularly. From any thread.
  func start() {
    loop.execute { [self] in look() }
  }

  private func look() {
    _ = loop.schedule(after: Self.interval) { [weak self] in self?.look() }
    broker.lookForProblems()
  }
}
