import SluiceIO
import SluiceWire

/// A topic and the settings it is created with; without settings, its first use creates it.
struct TopicPlan: Sendable {
  var name: String
  var settings: TopicSettings?
  /// The settings that producers and subscribers state at times when they open a stream; nil for none.
  var stated: TopicSettings?
}

/// How a peer leaves.
enum Departure: Sendable, CaseIterable {
  case close
  case reset
  /// The connection is cut permanently.
  case cut
  /// It stays connected, but no longer reads or writes.
  case silence
}

/// The plan of one client.
struct PeerPlan: Sendable {
  /// Whether it uses the client library, in its own process; otherwise it sends and reads protocol frames itself.
  var usesLibrary = false
  /// Whether the library reconnects after a lost connection; otherwise the peer does, with a new client.
  var persists = false
  var loop = 0
  var connectsAfter: Duration = .zero
  var maximumFrame: UInt32 = 1 << 20
  var keepalive: UInt32 = 1_000
  /// Whether it sends frames unprompted as heartbeats, which a peer needs that reads too slowly to see a PING.
  var heartbeats = true
  /// The most bytes read at a time.
  var readSize = 64 << 10
  /// A pause follows one read in this many; 0: never.
  var pauseOneIn = 0
  var pauses: ClosedRange<Duration> = .zero ... .zero
  var reconnects = true
  var farewell = Departure.close
  var producers: [ProducerPlan] = []
  var subscribers: [SubscriberPlan] = []
}

/// The plan of one producer of one topic.
struct ProducerPlan: Sendable {
  enum Finale: Sendable {
    case stay, cancel, complete, fail
  }

  var topic: String
  var acknowledges = true
  var records = 100
  var batch = 1...20
  /// The number of records published before a pause.
  var burst = 1...40
  var pauses: ClosedRange<Duration> = .zero ... .milliseconds(20)
  /// Bytes of payload.
  var sizes = 0...200
  var finale = Finale.stay
  /// Whether it continues after a lost connection.
  var continues = true
}

/// The plan of one subscriber of one topic.
struct SubscriberPlan: Sendable {
  enum Demand: Sendable, Equatable {
    case unlimited
    case one
    case bursts(Int)
  }

  var topic: String
  var start = Subscribe.Start.replay
  var lag = Subscribe.LagPolicy.skip
  var demand = Demand.unlimited
  /// The longest time until it requests more.
  var thinking: Duration = .zero
  /// Whether it repeats grants, and sends old ones after new ones.
  var repeatsGrants = false
  /// It cancels early with a probability of 1 in this many; 0: never.
  var cancelOneIn = 0
  /// The most times that it subscribes.
  var subscriptions = 3
  /// Whether it resumes at its offset after a lost connection.
  var resumes = true
  /// The filter of its subscription.
  var filter = RecordFilter()
}

/// A fault that no participant expects.
struct Disturbance: Sendable {
  enum Kind: Sendable {
    case hangUp(peer: Int, Departure)
    /// The connection is cut for a while.
    case cut(peer: Int, Duration)
    case reset(peer: Int)
    /// No peer reaches the broker.
    case partition(Duration)
    /// Selects one of the broker's loops, or one of the peers', which stalls.
    case stall(loop: Int, Duration)
    /// The broker's process is killed, and another one is started after the given time.
    case crash(Duration)
    /// The process of a peer that uses the library is killed.
    case kill(peer: Int)
    case delete(topic: String)
    case show(topic: String)
    case list
    case create(topic: String)
    /// Only that many of its newest records are left.
    case trim(topic: String, UInt64)
    /// Sets other limits.
    case set(topic: String, TopicSettings)
    case attack(Attack)
  }

  var time: Duration
  var kind: Kind
}
