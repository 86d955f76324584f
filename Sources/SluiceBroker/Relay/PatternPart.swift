import SluiceIO
import SluiceTopics
import SluiceWire

/// One other node's part of a subscription to a pattern: a stream at that node, which is opened again whenever it ends. Belongs to the subscription's loop.
final class PatternPart: LinkedStream {
  private static let firstDelay = Duration.milliseconds(5)
  private static let longestDelay = Duration.milliseconds(500)

  /// Empty, since it isn't about a single topic.
  let topic = ""
  let node: RemoteNode
  /// Its number among the subscription's parts.
  let index: Int
  private weak var pattern: RelayedPattern?
  private let loop: any EventLoop
  private var link: NodeLink?
  private var number: UInt32?
  private var timer: TimerToken?
  private var delay = PatternPart.firstDelay
  /// The number of its present stream among those of all parts.
  private(set) var source: UInt64 = 0
  /// Whether the node has sent SUBSCRIBED on its present stream, and whether it has announced all topics.
  private(set) var isOpen = false
  private(set) var isComplete = false
  /// Whether all topics were announced, and were live, on this stream or an earlier one.
  var wasAnnounced = false
  var wasLive = false
  /// Bytes of its records that weren't written yet.
  var unwrittenBytes = 0

  init(of pattern: RelayedPattern, at node: RemoteNode, index: Int, on loop: any EventLoop) {
    self.pattern = pattern
    self.node = node
    self.index = index
    self.loop = loop
  }

  var hasStream: Bool { number != nil }
  /// Whether it waits before it opens a stream again.
  var isWaiting: Bool { timer != nil }
  /// The longest record that the node accepts, in bytes.
  var longestRecord: Int { link?.maximumRecord ?? 0 }
  /// The longest frame that the node accepts, in bytes.
  var longestFrame: Int { link?.maximumFrame ?? 0 }

  /// Opens a stream.
  ///
  /// - Returns: whether the link has room.
  func open(over link: NodeLink, as source: UInt64) -> Bool {
    guard let opened = link.open(self) else { return false }
    (self.link, number, self.source) = (link, opened, source)
    (isOpen, isComplete) = (false, false)
    return true
  }

  func send(_ frame: some Frame) {
    if let number { link?.send(frame, stream: number) }
  }

  /// Lets the subscription try again after a delay.
  func waitToTryAgain() {
    guard timer == nil else { return }
    timer = loop.schedule(after: delay) { [weak self] in
      guard let self else { return }
      timer = nil
      pattern?.tryAgain()
    }
    delay = min(delay * 2, Self.longestDelay)
  }

  func release() {
    leaveOwner()
    loop.cancel(&timer)
    pattern = nil
  }

  // MARK: The owner

  func receive(_ type: FrameType, _ body: UnsafeRawBufferPointer) throws(WireError) -> Bool {
    guard let pattern else { return false }
    switch type {
    case .error:
      number = nil
      pattern.ended(self, try unsafe Fault(relayed: body))
      return true
    case .subscribed:
      guard !isOpen else { throw misplaced(type) }
      isOpen = true
      unsafe pattern.opened(self, try Subscribed(body: body))
    default:
      guard isOpen else { throw misplaced(type) }
      if try unsafe pattern.receive(type, body, from: self) { return false }
      throw misplaced(type)
    }
    return false
  }

  /// Called when all topics from the beginning of the stream were announced.
  func completed() {
    isComplete = true
    delay = Self.firstDelay
  }

  func leaveOwner() {
    if let number = number.take() { link?.cancel(number) }
  }

  func lost(_ fault: Fault) {
    number = nil
    pattern?.ended(self, fault)
  }

  private func misplaced(_ type: FrameType) -> WireError {
    WireError(.unexpectedFrame, "\(type) came on a subscription to a pattern")
  }
}
