import SluiceSession
import SluiceTopics
import SluiceWire

/// A stream on which records are delivered: served at the end of a turn, as far as there is demand. It is asked once a turn, never per record.
protocol SubscriberStream: ServerStream {
  var stream: UInt32 { get }
  var place: SubscriberPlace { get }
  func move(to place: SubscriberPlace)
  /// The records that it was granted, and those that it was sent.
  var credit: Credit { get }

  /// Puts the next frames of its stream into `writes`, about `bytes` of them at the most.
  func produce(into writes: WriteBatch, bytes: Int) -> DeliveryOutcome
  /// Everything is sent: it waits until there is more.
  func wait()
  /// There are records for it, and no demand.
  func noteDemandExhausted()

  /// Whether it is owed records that it hasn't been sent: granted, and there.
  var isOwed: Bool { get }
  /// Whether there are records that it hasn't been sent, granted or not.
  var isBehind: Bool { get }
  /// What its subscriber may still commit with after the last frame of the stream; nil without a durable cursor.
  var endedCursor: EndedCursor? { get }
  /// What takes the commits that follow the last frame of the stream; nil without a durable cursor.
  func successor(on streams: StreamMultiplexer) -> (any ServerStream)?
}

/// What is left to do after a turn of ``SubscriberStream/produce(into:bytes:)``.
enum DeliveryOutcome {
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

extension SubscriberStream {
  var kind: StreamKind { .subscription }
  var endedCursor: EndedCursor? { nil }

  func successor(on streams: StreamMultiplexer) -> (any ServerStream)? {
    endedCursor.map { CommittingStream($0, stream: stream, on: streams) }
  }

  func wait() {}
  func noteDemandExhausted() {}

  func commit(through offset: UInt64) throws(WireError) { throw DurablePlace.isMissing }

  func isDrained(isPatient: Bool) -> Bool { !isOwed && !(isPatient && isBehind) }

  /// Ends the stream: a record doesn't fit the client's frames.
  func tooLong(_ offset: UInt64, of topic: String, _ writes: WriteBatch) -> DeliveryOutcome {
    writes.append(
      Fault(
        code: .recordTooLarge,
        message: "the record at offset \(offset) of \(topic) is longer than the client's frames may be"),
      stream: stream)
    return .ended
  }
}

/// A subscription that waits for the store before it begins.
final class PendingSubscription: ServerStream {
  var kind: StreamKind { .subscription }
  func release() {}
  func reconsider() throws(WireError) {}
  func isDrained(isPatient: Bool) -> Bool { true }
}
