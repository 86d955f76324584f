import SluiceIO
import SluiceLog
import SluiceTopics
import SluiceWire

/// One topic of a subscription to a pattern: a subscription of its own, except that it uses the pattern's demand.
///
/// Its topic treats it like any other subscriber. Belongs to its connection's loop.
final class PatternMember: SubscriptionOwner, JoinedTopic {
  /// The start of a member, the records missed before it, and the policy if more are missed.
  struct Begin {
    var cursor: LogCursor
    var missed: UInt64
    var lag: Subscribe.LagPolicy
    /// Whether its subscriber has sent a position in this epoch.
    var isResuming: Bool
    /// Whether this epoch continues the subscriber's epoch.
    var continues = false
  }

  /// The pattern's subscription, which owns the member.
  unowned let pattern: PatternStream
  let subscription: SubscriptionStream
  /// The topic's number on the stream.
  let number: UInt32
  /// The description in MATCHED.
  let beginning: Subscribed
  let missedAtStart: UInt64

  /// Whether MATCHED was sent.
  var isAnnounced = false
  /// True while it counts as a topic from the beginning that isn't live yet.
  var isAwaited: Bool
  /// Whether its terminal event was sent. It then stays without work until the topic is deleted.
  private(set) var isCompleted = false
  /// The number of the topic's epoch isn't on disk yet. The member gets no turns before: after a crash the broker wouldn't know the number in MATCHED.
  var awaitsEpoch = false
  /// The subscriber's position under the topic's former number, while the member waits for the new one; nil if the subscriber knows none.
  var knownPosition: TopicPosition?
  /// Its turns begin when that many frames of another node, which served the topic before, are written.
  var begins: UInt64 = 0
  /// Its index in ``PacedMembers``, if its topic has paced producers.
  var pacedIndex: Int?

  init(
    of pattern: PatternStream, number: UInt32, loopState: TopicLoopState, epoch: TopicEpoch,
    _ begin: Begin,
    matcher: RecordMatcher?, isAwaited: Bool
  ) {
    self.pattern = pattern
    self.number = number
    self.isAwaited = isAwaited
    let liveOffset = max(epoch.log.head, begin.cursor.nextOffset)
    missedAtStart = begin.missed
    subscription = SubscriptionStream(
      stream: pattern.stream, loopState: loopState, epoch: epoch, streams: pattern.streams,
      cursor: begin.cursor, liveOffset: liveOffset, lag: begin.lag, granted: 0,
      isResuming: begin.isResuming, matcher: matcher)
    beginning = Subscribed(
      epoch: subscription.epochNumber, nextOffset: begin.cursor.nextOffset, liveOffset: liveOffset,
      gaps: epoch.newest != nil || matcher != nil, continues: begin.continues)
    subscription.owner = self
  }

  var topic: Topic { subscription.topic }
  var name: String { topic.name }
  var place: SubscriberPlace { subscription.place }
  var isBehind: Bool { subscription.isBehind }

  func leave() { subscription.release() }

  var loopState: TopicLoopState { subscription.loopState }

  var demand: Credit { pattern.pacingDemand }

  func woken() { pattern.takeTurn(self) }

  func pacingBegan() { pattern.pace(self) }

  func topicGone(_ fault: Fault) { pattern.topicGone(self, fault) }

  func epochContinued() { if !isCompleted { pattern.epochContinued(self) } }

  func completed() { isCompleted = true }
}

/// The members of a pattern's subscription that has ended. They leave their topics a share at a time.
///
/// Until a member has left, its topic counts it as a subscriber, but sends it nothing more.
// @unchecked: belongs to the loop of its connection, which runs its jobs.
final class PatternDeparture: @unchecked Sendable {
  /// Leaving a topic takes about a microsecond.
  private static let together = 256

  /// Retained because members refer to them while they are in their topics' lists.
  private let pattern: PatternStream
  private let streams: StreamMultiplexer
  private let transport: any StreamTransport
  private var members: ArraySlice<PatternMember>

  init(_ members: [PatternMember], of pattern: PatternStream) {
    self.pattern = pattern
    streams = pattern.streams
    transport = streams.transport
    self.members = members[...]
  }

  /// Releases the next members, and continues in a later turn. On the connection's loop.
  func goOn() {
    for member in members.prefix(Self.together) { member.subscription.release() }
    members = members.dropFirst(Self.together)
    guard !members.isEmpty else { return }
    streams.loop.execute { [self] in goOn() }
  }
}
