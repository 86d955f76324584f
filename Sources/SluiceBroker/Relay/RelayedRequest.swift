import SluiceSession
import SluiceWire

/// A request about a topic that another node serves. It is relayed, and so is the answer. Belongs to its connection's loop.
final class RelayedRequest: ServerStream, LinkedStream {
  let topic: String
  private let stream: UInt32
  private unowned let streams: StreamMultiplexer
  private let link: NodeLink
  private var number: UInt32?

  init(_ stream: UInt32, topic: String, link: NodeLink, on streams: StreamMultiplexer) {
    self.stream = stream
    self.topic = topic
    self.link = link
    self.streams = streams
  }

  /// Sends the request.
  func begin(_ frame: some Frame) {
    number = link.open(self)
    if let number { link.send(frame, stream: number) }
  }

  var kind: StreamKind { .request }
  func reconsider() throws(WireError) {}
  func isDrained(isPatient: Bool) -> Bool { true }

  func release() { leaveOwner() }

  // MARK: The owner

  func leaveOwner() {
    if let number = number.take() { link.cancel(number) }
  }

  func receive(_ type: FrameType, _ body: UnsafeRawBufferPointer) throws(WireError) -> Bool {
    switch type {
    case .error:
      let fault = try unsafe Fault(relayed: body)
      number = nil
      streams.refuse(stream, fault)
      return true
    case .topicInfo: _ = try unsafe TopicInfo(body: body)
    case .cursors: _ = try unsafe Cursors(body: body)
    case .states: _ = try unsafe TopicStates(body: body)
    case .done: break
    default: throw WireError(.unexpectedFrame, "\(type) answers no request about topic \(topic)")
    }
    number = nil
    if let token = streams.session.request(on: stream), streams.session.answers(token) {
      unsafe streams.send(type, body, stream: stream)
    }
    return true
  }

  func lost(_ fault: Fault) {
    number = nil
    streams.refuse(stream, fault)
  }
}

extension StreamMultiplexer {
  /// Appends a frame of another node to the answers, with an unchanged body and another stream number.
  func send(_ type: FrameType, _ body: UnsafeRawBufferPointer, stream: UInt32) {
    unsafe answers.append(type, body, stream: stream)
    transport.makeReady()
  }
}

extension [UInt8] {
  /// Appends a frame.
  mutating func append(_ type: FrameType, _ body: UnsafeRawBufferPointer, stream: UInt32) {
    unsafe withUnsafeTemporaryAllocation(byteCount: FrameHeader.size, alignment: 4) { header in
      unsafe FrameHeader(length: UInt32(body.count), type: type, stream: stream).write(
        at: header.baseAddress!)
      unsafe append(contentsOf: UnsafeRawBufferPointer(header))
    }
    unsafe append(contentsOf: body)
  }
}
