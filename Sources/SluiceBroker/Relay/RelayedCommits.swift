import SluiceSession
import SluiceWire

/// A relayed subscription with a durable cursor after the last frame of its stream. Its subscriber may still commit the last records.
final class RelayedCommits: ServerStream {
  private unowned let streams: StreamMultiplexer
  private let stream: UInt32
  private let topic: String
  private let link: NodeLink
  private var number: UInt32?

  init(_ number: UInt32, topic: String, link: NodeLink, on streams: StreamMultiplexer, stream: UInt32) {
    self.number = number
    self.topic = topic
    self.link = link
    self.streams = streams
    self.stream = stream
  }

  // When the client reuses the stream's number, this object is dropped without a call of `release()`.
  deinit { release() }

  var kind: StreamKind { .committing }
  func isDrained(isPatient: Bool) -> Bool { true }

  func release() {
    if let number = number.take() { link.release(number) }
  }

  func reconsider() throws(WireError) {
    if try streams.client.denial(of: .subscribe, on: topic) != nil { streams.releaseStream(stream) }
  }

  func commit(through offset: UInt64) throws(WireError) {
    if let number { link.send(Commit(nextOffset: offset), stream: number) }
  }
}
