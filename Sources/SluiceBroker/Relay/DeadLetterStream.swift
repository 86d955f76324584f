import SluiceIO
import SluiceTopics
import SluiceWire

/// A publication to a dead-letter topic on another node, for one group, with one record at a time. Belongs to its link's loop.
final class DeadLetterStream: LinkedStream {
  typealias Opened = (Result<UInt64, WireError>) -> Void

  private struct Letter {
    var batch: BatchBuilder
    var sequence: UInt64
    var answer: (WireError?) -> Void
    var isSent = false
  }

  let topic: String
  let node: RemoteNode
  private let link: NodeLink
  /// Nil before it begins and after it has ended.
  private var number: UInt32?
  private var opened: Opened?
  private var letter: Letter?
  private var granted = Demand(grantedThrough: 0, bytesThrough: 0)
  private var sentBytes: UInt64 = 0

  /// - Parameter opened: called with the sequence that the topic expects next.
  init(to topic: String, over link: NodeLink, _ opened: @escaping Opened) {
    self.topic = topic
    self.link = link
    self.opened = opened
    node = link.node
  }

  var isOver: Bool { number == nil }

  /// Opens it at the topic's owner. An existing topic must not be compact, since a compact topic doesn't keep every record.
  func begin(producer: UInt64, from first: UInt64, _ acknowledgement: PublishOpen.Acknowledgement) {
    number = link.open(self)
    guard let number else { return fail(TopicRegistry.moved(topic)) }
    var settings = TopicSettings()
    settings.compact = false
    link.send(
      PublishOpen(
        topic: topic, acknowledgement: acknowledgement, producer: producer, firstSequence: first,
        settings: settings), stream: number)
  }

  /// Publishes a record as soon as the owner grants it.
  func send(_ batch: BatchBuilder, sequence: UInt64, _ answer: @escaping (WireError?) -> Void) {
    letter = Letter(batch: batch, sequence: sequence, answer: answer)
    if isOver { return fail(TopicRegistry.moved(topic)) }
    sendLetter()
  }

  private func sendLetter() {
    guard let number, let letter, !letter.isSent, letter.sequence < granted.grantedThrough,
      sentBytes < granted.bytesThrough
    else { return }
    guard PublishHeader.size + letter.batch.bytes.count <= link.maximumFrame else {
      leaveOwner()
      return fail(
        WireError(
          .recordTooLarge,
          "a dead letter of \(letter.batch.bytes.count) bytes is longer than node \(node.name) takes, which serves topic \(topic)"
        ))
    }
    self.letter?.isSent = true
    sentBytes += UInt64(letter.batch.bytes.count)
    unsafe letter.batch.bytes.withUnsafeBytes {
      unsafe link.publish(from: letter.sequence, letter.batch.count, $0, stream: number)
    }
  }

  // MARK: The owner

  func receive(_ type: FrameType, _ body: UnsafeRawBufferPointer) throws(WireError) -> Bool {
    switch type {
    case .publishOpened:
      let frame = try unsafe PublishOpened(body: body)
      guard let answer = opened.take() else {
        throw WireError(.unexpectedFrame, "\(type) came twice on a publication to topic \(topic)")
      }
      granted = Demand(grantedThrough: frame.grantedThrough, bytesThrough: frame.bytesThrough)
      answer(.success(frame.nextSequence))
    case .demand:
      let more = try unsafe Demand(body: body)
      granted.grantedThrough = max(granted.grantedThrough, more.grantedThrough)
      granted.bytesThrough = max(granted.bytesThrough, more.bytesThrough)
      sendLetter()
    case .ack:
      let through = try unsafe Ack(body: body).through
      guard let letter, letter.isSent, through > letter.sequence else { return false }
      self.letter = nil
      letter.answer(nil)
    case .error:
      let fault = try unsafe Fault(relayed: body)
      number = nil
      fail(WireError(fault))
      return true
    case .complete:
      _ = try unsafe Complete(body: body)
      number = nil
      fail(WireError(.topicEnded, "topic \(topic) has ended; delete it, so that it takes dead letters again"))
      return true
    default: throw WireError(.unexpectedFrame, "\(type) came on a publication to topic \(topic)")
    }
    return false
  }

  func leaveOwner() {
    if let number = number.take() { link.cancel(number) }
  }

  func lost(_ fault: Fault) {
    number = nil
    fail(WireError(fault))
  }

  private func fail(_ error: WireError) {
    opened.take()?(.failure(error))
    letter.take()?.answer(error)
  }

  /// Ends it without calling back.
  func abandon() {
    (opened, letter) = (nil, nil)
    leaveOwner()
  }
}
