import SluiceIO
import SluiceTopics
import SluiceWire

/// The configuration of a broker. Every limit has a default and can be set.
public struct BrokerConfiguration: Sendable {
  /// The addresses at which the broker accepts connections. Port 0 takes any free port. Default: `127.0.0.1:7420`.
  public var listen: [SocketAddress] = [.host("127.0.0.1", port: 7420)]

  /// The number of event loops, each a thread; nil for one per core. Only for a broker that makes its own loops.
  public var loops: Int?

  /// The settings of new topics that neither their creator nor a rule sets. Nil stands for the setting of ``standardTopic(in:)``.
  public var topicDefaults = TopicSettings.standard

  /// The settings of new topics by their names; the first rule that matches counts.
  public var topicRules: [TopicRule] = []

  /// Bytes of records that a topic in memory keeps unless a limit is set: 64 MiB.
  public static let standardMemoryReplay = TopicSettings.standardMemoryReplay

  /// The settings of a topic without any set. In memory it keeps ``standardMemoryReplay`` bytes of records for late subscribers; a durable topic keeps
  /// all records up to the store's limit.
  public static func standardTopic(in storage: TopicSettings.Storage = .memory) -> TopicSettings {
    TopicSettings.standard(in: storage)
  }

  public var limits = BrokerLimits()

  /// The thresholds of the problems that the broker reports to clients with the right to administer it.
  public var problems = ProblemLimits()

  /// How long an orderly stop waits for subscribers with undelivered demand before it closes their connections. Default: 5 s.
  public var drainTime: Duration = .seconds(5)

  /// The broker's software name in WELCOME.
  public var software = "sluiced"

  /// The identity in WELCOME, from which epochs also derive; nil for a random one. Simulations set it.
  public var identity: UInt64?

  /// How this broker and the other nodes of its cluster authenticate each other; nil without a cluster, or if clients don't authenticate.
  public var peers: PeerSecurity?

  /// Called with each event on the broker's loops. The loop waits for the call to return.
  public var report: @Sendable (BrokerEvent) -> Void = { _ in }

  public init() {}
}

/// A configuration that can't be run, and why.
public struct ConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
  public var description: String
}

extension BrokerConfiguration {
  /// - Throws: ``ConfigurationError`` that names the first setting out of its range.
  public func validate() throws(ConfigurationError) {
    guard !listen.isEmpty else {
      throw ConfigurationError(description: "listen: at least one address is needed")
    }
    if let loops, !(1...1024).contains(loops) {
      throw ConfigurationError(description: "loops: \(loops) isn't in 1...1024")
    }
    try limits.validate()
  }
}
