import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceWire

/// A scenario made from a seed: the participants, the network's conditions, and the faults with their times.
struct Scenario: Sendable {
  enum Ending: Sendable {
    /// Everything settles, then all participants leave.
    case settled
    /// The broker is asked to stop in the middle of it.
    case shutdown(Duration)
    /// It is asked twice.
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
  /// Every record has a key, and some topics may keep only the newest of each.
  var isKeyed = false
  var topics: [TopicPlan] = []
  var peers: [PeerPlan] = []
  var disturbances: [Disturbance] = []
  var length: Duration = .seconds(1)
  var ending = Ending.settled

  /// The broker's deadline for silent peers, in milliseconds.
  var keepalive: UInt32 { limits.keepalive }

  /// The longest record that the broker takes, in bytes.
  var longestRecord: Int { limits.record }

  /// What clients state of a topic; nil for nothing.
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
