import SluiceBroker
import SluiceCommand
import SluiceDoors
import Synchronization

/// Writes events of gateways to the log. Each kind is limited per second, since clients can cause any number of events. Events that are only partly logged
/// are also counted.
final class DoorLog: Sendable {
  private enum Kind: Hashable {
    case refused, subscription, waiting, unnamed, ended, will
  }

  private static let linesPerSecond = 5

  private let logger: Logger
  private let budget = Mutex(LineBudget<Kind>())
  private let metrics = Mutex<BrokerMetrics?>(nil)

  init(_ logger: Logger) {
    self.logger = logger
  }

  /// Sets the metrics in which events are counted. Must be called before the first event.
  func count(in metrics: BrokerMetrics) { self.metrics.withLock { $0 = metrics } }

  /// From any thread.
  func note(_ event: DoorEvent) {
    switch event {
    case .mqttSessionRefused(let client, let identity):
      write(
        .refused,
        "a client of MQTT was refused a session, or a subscription in one: mqtt-sessions or mqtt-sessions-bytes is reached",
        client, identity)
    case .mqttSubscriptionsRefused(let client, let identity, let filter, let count, let code, let reason):
      let hex = String(code, radix: 16, uppercase: true)
      write(
        .subscription, "a subscription of a client of MQTT was refused", client, identity,
        [
          ("filter", EventLine.text(filter)), ("filters", .number(count)), ("code", .text("0x\(hex)")),
          ("cause", EventLine.text(reason)),
        ])
    case .mqttSubscriptionWaits(let client, let identity, let filter, let reason):
      write(
        .waiting, "a subscription of a client of MQTT can't be opened, and is tried again", client, identity,
        [("filter", EventLine.text(filter)), ("cause", EventLine.text(reason))])
    case .mqttTopicUnnamed(let client, let identity, let topic, let reason, let isFirst):
      metrics.withLock { $0?.add(.unnamedMessages) }
      guard isFirst else { return }
      write(
        .unnamed,
        "a client of MQTT publishes to a topic that the broker can't name: such messages are dropped", client,
        identity, [("topic", EventLine.text(topic)), ("cause", EventLine.text(reason))])
    case .mqttSessionEnded(let client, let identity):
      write(
        .ended,
        "a session of MQTT has ended with its connection: mqtt-sessions or mqtt-sessions-bytes is reached, or it is longer than max-record",
        client,
        identity)
    case .mqttWillPublishedEarly(let client, let identity):
      write(
        .will,
        "the will of a client of MQTT was published before its delay was over: mqtt-wills-bytes is reached",
        client, identity)
    }
  }

  private func write(
    _ kind: Kind, _ message: String, _ client: String, _ identity: String,
    _ more: [(key: String, value: JSON)] = []
  ) {
    let (verdict, leftOut) = budget.withLock { budget in
      let verdict = budget.spend(on: kind, atMost: Self.linesPerSecond, now: WallTime.now)
      return (verdict, verdict.isWritten ? budget.takeLeftOut() : [])
    }
    let count = leftOut.reduce(0) { $0 + $1.count }
    if count > 0 {
      logger.log(
        .warning, "lines about sessions, subscriptions, topics and wills of MQTT were left out",
        ["lines": .number(count)])
    }
    guard verdict.isWritten else { return }
    let names = [("client", EventLine.text(client)), ("identity", EventLine.text(identity))]
    logger.log(.warning, message, fields: names + more)
  }
}
