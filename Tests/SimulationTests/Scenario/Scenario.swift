import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceWire

/// A scenario made from a seed: the participants, the network's conditions, and the faults with their times.
struct Scenario: Sendable {
  enum Ending: Sendable {
    /// All pending work finishes, then all participants leave.
    case settled
    /// The broker shuts down in the middle of the scenario.
    case shutdown(Duration)
    /// A second request stops the broker immediately.
    case stop(Duration)
  }

  var seed: UInt64
  var conditions = SimulatedConditions()
  var brokerLoops = 1
  var peerLoops = 1
  var limits = BrokerLimits()
  var topicDefaults = TopicSettings(
    replayRecords: TopicSettings.unlimited, replayBytes: TopicSettings.unlimited,
    replayAge: TopicSettings.unlimited)
  var drainTime: Duration = .seconds(5)
  /// Whether every record has a key, and some topics may keep only the newest record of each.
  var isKeyed = false
  var topics: [TopicPlan] = []
  var peers: [PeerPlan] = []
  var disturbances: [Disturbance] = []
  var length: Duration = .seconds(1)
  var ending = Ending.settled

  /// The broker's deadline for silent peers, in milliseconds.
  var keepalive: UInt32 { limits.keepalive }

  /// The longest record that the broker accepts, in bytes.
  var longestRecord: Int { limits.record }

  /// The settings that clients state for a topic; nil for none.
  func stated(of topic: String) -> TopicSettings? { topics.first { $0.name == topic }?.stated }

  var configuration: BrokerConfiguration {
    var configuration = BrokerConfiguration()
    configuration.limits = limits
    configuration.topicDefaults = topicDefaults
    configuration.drainTime = drainTime
    configuration.identity = seed | 1 << 63
    return configuration
  }
}
