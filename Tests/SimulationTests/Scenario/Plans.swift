import SluiceIO
import SluiceWire

/// A topic, and what it was created with; without settings it is made by its first use.
struct TopicPlan: Sendable {
  var name: String
  var settings: TopicSettings?
  /// What its producers and subscribers state of it, some of the times they open a stream; nil for nothing.
  var stated: TopicSettings?
}

/// How a peer leaves.
enum Departure: Sendable, CaseIterable {
  case close
  case reset
  /// The cable is cut, and stays cut.
  case cut
  /// It stays connected, and neither reads nor writes any more.
  case silence
}

/// One client.
struct PeerPlan: Sendable {
  /// Uses the client library, in a process of its own; otherwise it speaks the protocol itself.
  var usesLibrary = false
  /// Lets the library make another connection when one is lost; otherwise it does so itself, with a client of its own.
  var persists = false
  var loop = 0
  var connectsAfter: Duration = .zero
  var maximumFrame: UInt32 = 1 << 20
  var keepalive: UInt32 = 1_000
  /// Sends frames unasked as a sign of life, which a peer needs that reads too slowly to see a PING.
  var heartbeats = true
  /// The most bytes that are read at a time.
  var readSize = 64 << 10
  /// After one read in so many comes a pause; 0: never.
  var pauseOneIn = 0
  var pauses: ClosedRange<Duration> = .zero ... .zero
  var reconnects = true
  var farewell = Departure.close
  var producers: [ProducerPlan] = []
  var subscribers: [SubscriberPlan] = []
}

/// What one producer does on one topic.
struct ProducerPlan: Sendable {
  enum Finale: Sendable {
    case stay, cancel, complete, fail
  }

  var topic: String
  var acknowledges = true
  var records = 100
  var batch = 1...20
  /// Records in a row, before a pause.
  var burst = 1...40
  var pauses: ClosedRange<Duration> = .zero ... .milliseconds(20)
  /// Bytes of payload.
  var sizes = 0...200
  var finale = Finale.stay
  /// Goes on after a lost connection.
  var continues = true
}

/// What one subscriber does on one topic.
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
  /// How long it takes before it asks for more, at most.
  var thinking: Duration = .zero
  /// Sends grants twice, and old ones after new ones.
  var repeatsGrants = false
  /// One in so many cancels early; 0: never.
  var cancelOneIn = 0
  /// How often it subscribes, at most.
  var subscriptions = 3
  /// After a lost connection it goes on where it was.
  var resumes = true
  /// Which records it wants.
  var filter = RecordFilter()
}

/// A fault that no participant expects.
struct Disturbance: Sendable {
  enum Kind: Sendable {
    case hangUp(peer: Int, Departure)
    /// The cable is cut for a while.
    case cut(peer: Int, Duration)
    case reset(peer: Int)
    /// No peer reaches the broker.
    case partition(Duration)
    /// All the loops of one kind may stall: one of the broker's, or one of the peers'.
    case stall(loop: Int, Duration)
    /// The broker's process is killed, and another is started so much later.
    case crash(Duration)
    /// The process of a peer that uses the library is killed.
    case kill(peer: Int)
    case delete(topic: String)
    case show(topic: String)
    case list
    case create(topic: String)
    /// So many of its newest records are left.
    case trim(topic: String, UInt64)
    /// Its limits change.
    case set(topic: String, TopicSettings)
    case attack(Attack)
  }

  var time: Duration
  var kind: Kind
}
