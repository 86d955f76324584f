import SluiceAccess
import SluiceBroker
import SluiceIO
import SluiceWire
import Testing

struct BrokerConfigurationTests {
  private typealias Change = (inout BrokerConfiguration) -> Void

  /// The error message for the configuration with that change, or nil if it is valid.
  private func complaint(_ change: Change) -> String? {
    var configuration = BrokerConfiguration()
    change(&configuration)
    do throws(ConfigurationError) {
      try configuration.validate()
      return nil
    } catch {
      return error.description
    }
  }

  @Test func theDefaultsCanBeRun() {
    #expect(complaint { _ in } == nil)
  }

  @Test func whatIsOutOfRangeIsNamed() {
    let cases: [(String, Change)] = [
      ("listen", { $0.listen = [] }),
      ("loops", { $0.loops = 0 }),
      ("loops", { $0.loops = 1025 }),
      ("limits.connections", { $0.limits.connections = 0 }),
      ("limits.record", { $0.limits.record = 0 }),
      ("limits.record", { $0.limits.record = 256 << 20 + 1 }),
      ("limits.frame", { $0.limits.frame = $0.limits.record + 1023 }),
      ("limits.frame", { ($0.limits.record, $0.limits.frame) = (1, Limits.smallestFrame - 1) }),
      ("limits.frame", { $0.limits.frame = 512 << 20 + 1 }),
      ("limits.streams", { $0.limits.streams = 0 }),
      ("limits.streams", { $0.limits.streams = 1_048_577 }),
      ("limits.topics", { $0.limits.topics = 0 }),
      ("limits.producerWindow", { $0.limits.producerWindow = 1 }),
      ("limits.producerWindow", { $0.limits.producerWindow = 1 << 32 + 1 }),
      ("limits.connections", { $0.limits.connections = (1 << 24) + 1 }),
      ("limits.connectionsPerAddress", { $0.limits.connectionsPerAddress = 0 }),
      ("limits.connectionsPerIdentity", { $0.limits.connectionsPerIdentity = 0 }),
      ("limits.producerWindowBytes", { $0.limits.producerWindowBytes = 65_535 }),
      ("limits.memory", { $0.limits.memory = (1 << 20) - 1 }),
      ("limits.buffered", { $0.limits.buffered = (1 << 20) - 1 }),
      ("limits.bufferedPerConnection", { $0.limits.bufferedPerConnection = 4095 }),
      ("limits.write", { $0.limits.write = .seconds(-1) }),
      ("limits.tcpKeepalive", { $0.limits.tcpKeepalive = .seconds(-1) }),
      ("limits.tcpKeepalive", { $0.limits.tcpKeepalive = .seconds(32_768) }),
      ("limits.idle", { $0.limits.idle = .seconds(-1) }),
      ("limits.subscriptions", { $0.limits.subscriptions = -1 }),
      ("limits.publicationsPerConnection", { $0.limits.publicationsPerConnection = -1 }),
      ("limits.topicsPerConnection", { $0.limits.topicsPerConnection = -1 }),
      ("limits.identityPublishBytes", { $0.limits.identityPublishBytes = -1 }),
      ("limits.writeBatch", { $0.limits.writeBatch = 4095 }),
      ("limits.answers", { $0.limits.answers = 4095 }),
      ("limits.attempts.free", { $0.limits.attempts.free = -1 }),
      ("limits.attempts.capacity", { $0.limits.attempts.capacity = 0 }),
      ("limits.attempts", { $0.limits.attempts.first = .seconds(-1) }),
      ("limits.attempts.memory", { $0.limits.attempts.memory = .seconds(29) }),
    ]
    for (path, change) in cases {
      let complaint = complaint(change)
      #expect(complaint?.hasPrefix("\(path): ") == true, "\(path): \(complaint ?? "no complaint")")
    }
  }

  @Test func theBordersAreWithinTheRange() {
    let cases: [Change] = [
      { $0.loops = 1 }, { $0.loops = 1024 }, { $0.limits.connections = 1 },
      { ($0.limits.record, $0.limits.frame) = (1, Limits.smallestFrame) },
      { ($0.limits.record, $0.limits.frame) = (256 << 20, 256 << 20 + 1024) },
      { $0.limits.frame = 512 << 20 }, { $0.limits.streams = 1 }, { $0.limits.streams = 1_048_576 },
      { $0.limits.topics = 1 }, { $0.limits.producerWindow = 2 }, { $0.limits.producerWindow = 1 << 32 },
      { $0.limits.writeBatch = 4096 }, { $0.limits.answers = 4096 }, { $0.limits.keepalive = 0 },
    ]
    for (index, change) in cases.enumerated() { #expect(complaint(change) == nil, "case \(index)") }
  }

  @Test func aBrokerIsntMadeFromWhatCantBeRun() {
    var configuration = BrokerConfiguration()
    configuration.limits.topics = 0
    #expect(throws: ConfigurationError.self) { try Broker(configuration) }
  }

  @Test func aBrokerThatCantListenLeavesNothingBehind() async throws {
    var configuration = BrokerConfiguration()
    configuration.listen = [.host("127.0.0.1", port: 0)]
    configuration.loops = 1
    let first = try Broker(configuration)
    let address = try first.start()[0]
    configuration.listen = [.host("127.0.0.1", port: 0), address]
    let second = try Broker(configuration)
    #expect(throws: IOError.self) { try second.start() }
    first.shutdown()
    try await first.run()

    // The address is free again, and a task can run and stop a broker.
    configuration.listen = [address]
    let third = try Broker(configuration)
    let task = Task { try await third.run() }
    task.cancel()
    try await task.value
  }
}
