import SluiceSession
import SluiceTopics
import SluiceWire

/// A publication to a topic that another node serves. Belongs to its connection's loop.
///
/// Batches are sent to the owner unchanged. Grants and acknowledgements of the owner are passed to the producer, so only the owner acknowledges records.
/// While the link is congested, grants are withheld.
final class RelayedPublication: DueStream, LinkedStream {
  /// The end that the producer has requested; the owner's answer ends the stream.
  private enum Ending {
    case withTopic
    case alone
  }

  let topic: String
  private let stream: UInt32
  private unowned let streams: StreamMultiplexer
  private let link: NodeLink
  private var number: UInt32?
  private var ends: Ending?
  /// The latest frames of the owner that weren't sent to the producer yet.
  private var ack: Ack?
  private var demand: Demand?
  private var isDue = false
  /// Whether the owner has sent PUBLISH_OPENED.
  private var isOpen = false
  /// The last sequence that was acknowledged to the producer, or whose acknowledgement is about to be sent.
  private var acknowledged: UInt64 = 0

  init(_ stream: UInt32, topic: String, link: NodeLink, on streams: StreamMultiplexer) {
    self.stream = stream
    self.topic = topic
    self.link = link
    self.streams = streams
  }

  func begin(_ frame: PublishOpen) {
    number = link.open(self)
    guard let number else { return }
    link.send(streams.origin, stream: number)
    link.send(frame, stream: number)
  }

  var kind: StreamKind { .publication }

  // MARK: The producer

  /// - Parameter isAwaited: ignored. The owner acknowledges each batch, since a node that stops uses the acknowledgements to see which records have reached
  ///   the owner; see ``isDrained(isPatient:)``.
  func append(_ count: UInt32, _ batch: UnsafeRawBufferPointer, isAwaited: Bool) {
    guard let number, let spent = streams.session.publication(stream)?.records.spent else { return }
    guard PublishHeader.size + batch.count <= link.maximumFrame else {
      return streams.refuse(
        stream,
        Fault(
          code: .recordTooLarge,
          message:
            "a batch of \(batch.count) bytes is longer than node \(link.node.name) takes, which serves the topic"
        ))
    }
    unsafe link.publish(from: spent - UInt64(count), count, batch, stream: number)
    streams.topics.received(records: count)
  }

  func complete(_ ending: Complete.Ending) {
    ends = .withTopic
    if let number { link.send(Complete(ending), stream: number) }
  }

  func cancel() -> Bool {
    ends = .alone
    guard let number else { return true }
    link.send(Cancel(), stream: number)
    return false
  }

  func reconsider() throws(WireError) {
    guard ends == nil, let denied = try streams.client.denial(of: .publishOpen, on: topic) else { return }
    settle()
    throw denied
  }

  func release() { leaveOwner() }

  func isDrained(isPatient: Bool) -> Bool {
    guard ends == nil, let credit = streams.session.publication(stream) else { return ends == nil }
    return acknowledged >= credit.records.spent
  }

  // MARK: The owner

  func leaveOwner() {
    guard let number = number.take() else { return }
    switch ends {
    case nil: link.cancel(number)
    case .alone: link.leaveCancelled(number)
    case .withTopic: link.leaveCompleting(number)
    }
  }

  func receive(_ type: FrameType, _ body: UnsafeRawBufferPointer) throws(WireError) -> Bool {
    guard type != .publishOpened || !isOpen else {
      throw WireError(.unexpectedFrame, "\(type) came twice on a publication to topic \(topic)")
    }
    switch type {
    case .publishOpened: try unsafe opened(PublishOpened(body: body))
    case .ack where isOpen: try unsafe acknowledge(Ack(body: body))
    case .demand where isOpen:
      unsafe demand = try Demand(body: body)
      makeDue()
    case .connected where isOpen, .disconnected where isOpen:
      // The producer first gets the grants from before.
      settle()
      if ends == nil { unsafe streams.send(type, body, stream: stream) }
    // The owner still answers CANCEL.
    case .complete where ends == .alone, .error where ends == .alone: break
    case .complete, .error, .cancelled:
      end(type, try unsafe lastFrame(type, body))
      return true
    default: throw WireError(.unexpectedFrame, "\(type) came on a publication to topic \(topic)")
    }
    return false
  }

  private func opened(_ frame: PublishOpened) throws(WireError) {
    isOpen = true
    acknowledged = frame.nextSequence
    guard streams.session.publication(stream) != nil else { return }
    streams.session.publication(stream, continuesAt: frame.nextSequence)
    _ = streams.session.raise(
      to: Demand(grantedThrough: frame.grantedThrough, bytesThrough: frame.bytesThrough), on: stream)
    streams.send(frame, stream: stream)
  }

  private func acknowledge(_ frame: Ack) throws(WireError) {
    if let credit = streams.session.publication(stream), frame.through > credit.records.spent {
      throw WireError(
        .malformedFrame,
        "ACK counts \(frame.through) records for topic \(topic), where \(credit.records.spent) were published"
      )
    }
    guard frame.through > acknowledged else { return }
    acknowledged = frame.through
    ack = frame
    makeDue()
  }

  private func makeDue() {
    guard !isDue else { return }
    isDue = true
    streams.makeDue(self)
  }

  func settleDue() {
    isDue = false
    if streams.session.object(stream) === self { settle() }
  }

  /// Sends the latest acknowledgement and grant to the producer.
  private func settle() {
    if let ack = ack.take() { streams.send(ack, stream: stream) }
    if link.isCongested, demand != nil { return link.notify(self) }
    if let demand = demand.take(), streams.session.raise(to: demand, on: stream) {
      streams.send(demand, stream: stream)
    }
  }

  /// Called when the link is no longer congested.
  func linkDrained() {
    if demand != nil { makeDue() }
  }

  // MARK: The end

  /// Checks the owner's last frame, and returns its body for the producer.
  private func lastFrame(_ type: FrameType, _ body: UnsafeRawBufferPointer) throws(WireError) -> [UInt8] {
    switch type {
    case .complete: _ = try unsafe Complete(body: body)
    case .cancelled:
      _ = try unsafe Cancelled(body: body)
      guard ends != nil else {
        throw WireError(
          .unexpectedFrame, "CANCELLED came on a publication to topic \(topic) that wasn't cancelled")
      }
    default: return try unsafe Fault(relayed: body).encodedBody
    }
    return unsafe Array(body)
  }

  private func end(_ type: FrameType, _ body: [UInt8]) {
    number = nil
    settle()
    // The session treats the number of a stream that the client has ended as free already.
    if ends == nil { streams.endStream(stream) } else { streams.releaseStream(stream) }
    unsafe body.withUnsafeBytes { unsafe streams.send(type, $0, stream: stream) }
  }

  func lost(_ fault: Fault) {
    number = nil
    settle()
    if ends == .alone {
      streams.releaseStream(stream)
      streams.send(Cancelled(), stream: stream)
    } else if ends == .withTopic {
      streams.releaseStream(stream)
      streams.send(fault, stream: stream)
    } else {
      streams.refuse(stream, fault)
    }
  }
}
