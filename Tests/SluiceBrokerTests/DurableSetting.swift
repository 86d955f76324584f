import SluiceIO
import SluiceStore
import SluiceWire
import Synchronization
import TestSupport

@testable import SluiceBroker
@testable import SluiceTopics

/// A broker on real sockets, with a store that outlives it.
final class DurableSetting {
  private(set) var store: GatedStore
  private(set) var broker: Broker
  private(set) var address: String
  private let configuration: BrokerConfiguration
  private let reported: Reported

  final class Reported: Sendable {
    private let events = Mutex<[StoreEvent]>([])

    func add(_ event: StoreEvent) { events.withLock { $0.append(event) } }

    var all: [StoreEvent] { events.withLock { $0 } }
  }

  init(limit: Int? = nil, _ change: (inout BrokerConfiguration) -> Void = { _ in }) throws {
    var configuration = BrokerConfiguration()
    configuration.listen = [.host(Loopback.freshHost(), port: 0)]
    configuration.loops = 2
    configuration.limits.keepalive = 0
    configuration.limits.handshake = .seconds(600)
    configuration.drainTime = .seconds(1)
    change(&configuration)
    self.configuration = configuration
    store = GatedStore(limit: limit)
    reported = Reported()
    (broker, address) = try Self.start(configuration, store, reported)
  }

  deinit {
    broker.stop()
  }

  private static func start(
    _ configuration: BrokerConfiguration, _ store: GatedStore, _ reported: Reported
  ) throws -> (Broker, String) {
    let broker = try Broker(configuration, storage: StoreConfiguration(store) { reported.add($0) })
    return (broker, "\(try broker.start()[0])")
  }

  var events: [StoreEvent] { reported.all }

  func client() throws -> RawClient {
    let client = try RawClient(address)
    try client.shakeHands()
    return client
  }

  /// Stops the broker, in order or with its store cut off, and starts another one on the stored data.
  ///
  /// - Parameters:
  ///   - copy: a store that replaces the present one; nil to keep that.
  ///   - failure: how commits to the store fail from the start on; nil if they don't.
  func restart(cutOff: Bool = false, on copy: MemoryStore? = nil, failure: StoreError.Kind? = nil) throws {
    let isStopped = Flag()
    broker.whenStopped { isStopped.raise() }
    if cutOff { store.cutOff() }
    if cutOff { broker.stop() } else { broker.shutdown() }
    try eventually("the broker has stopped") { isStopped.isRaised }
    store = GatedStore(copy ?? store.memory, limit: store.limit)
    store.fail(failure)
    (broker, address) = try Self.start(configuration, store, reported)
  }

  /// The settings of a durable topic.
  static func durable(_ sync: TopicSettings.Sync = .always) -> TopicSettings {
    var settings = TopicSettings()
    settings.storage = .durable
    settings.sync = sync
    return settings
  }
}
