import SluiceSession
import SluiceTopics
import SluiceWire

/// A stream that delivers records. It is served at the end of a turn if there is demand, once per turn instead of per record.
protocol SubscriberStream: ServerStream {
  var stream: UInt32 { get }
  var place: SubscriberPlace { get }
  func move(to place: SubscriberPlace)
  /// The records that were requested, and those that were sent.
  var credit: Credit { get }

  /// Adds the next frames of its stream to `writes`, about `bytes` of them at most.
  func produce(into writes: WriteBatch, bytes: Int) -> DeliveryOutcome
  /// Called when everything is sent: waits for more.
  func wait()
  /// Called when there are records but no demand.
  func noteDemandExhausted()

  /// Whether there are requested records that weren't sent.
  var isOwed: Bool { get }
  /// Whether there are records that weren't sent, requested or not.
  var isBehind: Bool { get }
  /// The durable cursor with which its subscriber may still commit after the last frame of the stream; nil without one.
  var endedCursor: EndedCursor? { get }
  /// Returns the object that takes the commits after the last frame of the stream; nil without a durable cursor.
  func successor(on streams: StreamMultiplexer) -> (any ServerStream)?
}

/// The result of a turn of ``SubscriberStream/produce(into:bytes:)``.
enum DeliveryOutcome {
  /// There is more to send.
  case more
  /// Everything is sent. The stream waits for the topic.
  case waiting
  /// There are records, but no demand.
  case starved
  /// The next records are being read from storage. The stream is woken when they have arrived.
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

  /// Ends the stream because a record is too long for the client's frames.
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
