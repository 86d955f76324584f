import SluiceAccess
import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

/// A stream that a connection serves at the end of a turn, as far as there is demand, and that a ``TopicLoopState`` wakes for it.
///
/// The base of all readers of topics; belongs to its connection's loop. It is asked once a turn, never per record.
class Consumer: ServerStream, TopicSubscriber {
  /// What is left to do after a turn of `produce(into:bytes:)`.
  enum Outcome {
    /// There is more to send.
    case more
    /// Everything is sent; it waits for the topic.
    case waiting
    /// There are records, and no demand for them.
    case starved
    /// There are records, and they are being read from storage: it is woken when they have come.
    case loading
    /// The last frame of the stream was produced.
    case ended
  }

  let stream: UInt32
  unowned let connection: Connection
  var credit: Credit
  var place = SubscriberPlace.none
  /// Its place in the loop state's list of all.
  var index = 0
  /// The epoch that it counts for, which needn't be the one that it reads.
  var attachedEpoch: TopicEpoch?

  var identity: String { connection.identity.name }
  var isBlocked: Bool { connection.isBlocked }

  init(stream: UInt32, connection: Connection, granted: UInt64) {
    self.stream = stream
    self.connection = connection
    credit = Credit(granted: granted)
  }

  /// Takes over a grant. Returns true when it allows more than before.
  func raise(to granted: UInt64) -> Bool {
    credit.raise(to: granted)
  }

  /// Puts the next frames of its stream into `writes`, about `bytes` of them at the most.
  func produce(into writes: WriteBatch, bytes: Int) -> Outcome {
    preconditionFailure("every consumer produces something of its own")
  }

  /// Ends the stream: a record doesn't fit the client's frames.
  func tooLong(_ offset: UInt64, of topic: String, _ writes: WriteBatch) -> Outcome {
    writes.append(
      Fault(
        code: .recordTooLarge,
        message: "the record at offset \(offset) of \(topic) is longer than the client's frames may be"),
      stream: stream)
    return .ended
  }

  /// Everything is sent: it waits until there is more.
  func wait() {}

  /// Its stream is over: gives up its place in the topic.
  func leave() {}

  func release() {
    leave()
    place = .ended
  }

  var kind: StreamKind { .subscription }

  func reconsider() throws(WireError) {}

  func isDrained(isPatient: Bool) -> Bool { !isOwed && !(isPatient && isBehind) }

  /// There are records for it, and no demand.
  func starve() {}

  /// There may be more for it.
  func woken() {
    place = .none
    connection.makeReady(self)
  }

  /// Records have come from storage that it was waiting for.
  func storedRecordsArrived() {
    if case .none = place { woken() }
  }

  /// Its topic's producers are paced from now on.
  func pacingBegan() {}

  /// Whether it is told how many producers there are.
  var wantsProducers: Bool { false }

  /// The number of its topic's producers may have changed.
  func producersChanged() {}

  /// Its topic was deleted.
  func topicDeleted(_ name: String) {
    connection.refuse(stream, .topicDeleted(name))
  }

  /// Whether it is owed records that it hasn't been sent: granted, and there.
  var isOwed: Bool { false }

  /// Whether there are records that it hasn't been sent, granted or not.
  var isBehind: Bool { false }

  /// What its subscriber may still commit with after the last frame of the stream; nil without a durable cursor.
  var endedCursor: EndedCursor? { nil }

  /// Adds its position, for flow control.
  func report(to positions: inout ReaderPositions) {}

  /// Its position. Nil for what isn't shown by itself.
  var standing: SubscriberStanding? { nil }

  /// Counts the holds up to `now` that its position has made.
  func count(_ holds: [HoldLog.Hold], to now: MonotonicTime) {}

  /// Whether it holds producers.
  ///
  /// - Parameter hold: what stops them now.
  func isHolding(open hold: HoldLog.Hold?) -> Bool { false }

  /// As it is shown to people. Nil for what isn't shown by itself.
  ///
  /// - Parameter hold: what stops producers now.
  func shown(open hold: HoldLog.Hold?) -> TopicInfo.Subscription? { nil }
}
