import SluiceSession
import SluiceTopics
import SluiceWire

/// A subscription with a durable cursor after the last frame of its stream. Its subscriber may commit the last records after processing them, until it
/// reuses the stream's number.
final class CommittingStream: ServerStream {
  private unowned let streams: StreamMultiplexer
  private let stream: UInt32
  private var cursor: EndedCursor

  init(_ cursor: EndedCursor, stream: UInt32, on streams: StreamMultiplexer) {
    self.cursor = cursor
    self.stream = stream
    self.streams = streams
  }

  var kind: StreamKind { .committing }
  func release() {}
  func isDrained(isPatient: Bool) -> Bool { true }

  func reconsider() throws(WireError) {
    if try streams.client.denial(of: .subscribe, on: cursor.topic.name) != nil {
      streams.releaseStream(stream)
    }
  }

  func commit(through offset: UInt64) throws(WireError) { cursor.commit(through: offset) }
}
