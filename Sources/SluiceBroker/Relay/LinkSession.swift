import SluiceSession
import SluiceWire

/// What one use of a link's stream number is for. Belongs to the link's loop.
protocol LinkedStream: AnyObject {
  /// The topic that the other node serves.
  var topic: String { get }

  /// Takes a frame of the owner.
  ///
  /// - Parameter body: valid during the call only.
  /// - Returns: whether it is the last one of the stream, whose number is free then.
  /// - Throws: the owner's protocol violation, which ends the link.
  func receive(_ type: FrameType, _ body: UnsafeRawBufferPointer) throws(WireError) -> Bool

  /// Gives its number back to the link, with CANCEL if that is needed.
  func leaveOwner()

  /// The link is gone, or the topic has left the node: ends the stream with this error. It has no number then.
  func lost(_ fault: Fault)
}

/// A node's side of a connection to another node: the handshake, and the streams by number.
///
/// A value without I/O and without a clock. It keeps the objects of the streams and never calls them. An error that it throws is the other node's
/// protocol violation and ends the connection.
struct LinkSession {
  enum Phase: Hashable {
    /// Waiting for WELCOME.
    case handshake
    case open
    /// The other node has sent GOAWAY: open streams go on, no new ones are opened.
    case leaving
  }

  /// What is to be done about a frame.
  @safe
  enum Action {
    /// Nothing: the stream was cancelled, or the frame is unknown and may be skipped.
    case none
    case opened(Welcome)
    /// The frame is for this stream.
    case stream(any LinkedStream)
    /// Answer with PONG and this token.
    case answerPing(token: UInt64)
    case leaving
    /// The other node closes the connection, for this reason.
    case failed(Fault)
  }

  private enum Slot {
    case free
    case open(any LinkedStream)
    /// CANCEL was sent: what comes before CANCELLED is dropped.
    case cancelling
    /// COMPLETE was sent, and nothing waits for what becomes of it: the owner's last frame is dropped, too.
    case completing
    /// The owner has sent the stream's last frame, and more may be sent to it.
    case kept
  }

  private(set) var phase = Phase.handshake
  private var slots: [Slot] = []
  private var numbers = StreamNumbers()
  /// Numbers that aren't free.
  private(set) var count = 0

  // MARK: Frames in

  /// Takes one frame.
  mutating func receive(
    _ header: FrameHeader, _ body: UnsafeRawBufferPointer, _ handshake: ClientHandshake
  ) throws(WireError) -> Action {
    if phase == .handshake {
      let welcome = try unsafe handshake.receive(header, body)
      numbers.limit = welcome.maximumStreams
      phase = .open
      return .opened(welcome)
    }
    guard try header.admission(at: .client) == .take else { return .none }
    guard header.stream == 0 else { return try stream(header) }
    switch header.type {
    case .ping: return unsafe .answerPing(token: try Ping(body: body).token)
    case .pong: return .none
    case .goAway:
      phase = .leaving
      return .leaving
    case .error: return unsafe .failed(try Fault(body: body))
    default: throw WireError(.unexpectedFrame, "\(header.type) came after the handshake")
    }
  }

  private mutating func stream(_ header: FrameHeader) throws(WireError) -> Action {
    switch slot(header.stream) {
    case .open(let stream): return .stream(stream)
    case .cancelling:
      if header.type == .cancelled { release(header.stream) }
      return .none
    case .completing:
      if [.cancelled, .complete, .error].contains(header.type) { release(header.stream) }
      return .none
    case .free, .kept:
      throw WireError(.invalidStream, "\(header.type) came on stream \(header.stream), which isn't open")
    }
  }

  // MARK: Streams

  /// Whether another stream can be opened.
  var hasRoom: Bool { phase == .open && !numbers.areUsedUp }

  /// The open streams with their numbers, in ascending order.
  var numbered: [(number: UInt32, stream: any LinkedStream)] {
    slots.indices.compactMap {
      if case .open(let stream) = slots[$0] { (UInt32($0 + 1), stream) } else { nil }
    }
  }

  /// Opens a stream.
  ///
  /// - Returns: its number; nil without room.
  mutating func open(_ stream: any LinkedStream) -> UInt32? {
    guard phase == .open, let number = numbers.take() else { return nil }
    while slots.count < Int(number) { slots.append(.free) }
    slots[Int(number) - 1] = .open(stream)
    count += 1
    return number
  }

  /// CANCEL is sent. Nothing more is handed out for the stream.
  mutating func cancel(_ number: UInt32) { set(number, .cancelling) }

  /// COMPLETE was sent. Nothing more is handed out for the stream.
  mutating func leaveCompleting(_ number: UInt32) { set(number, .completing) }

  /// The owner has sent the stream's last frame, and its number stays in use.
  mutating func keep(_ number: UInt32) { set(number, .kept) }

  /// The stream is over on both sides.
  mutating func release(_ number: UInt32) {
    if case .free = slot(number) { return }
    set(number, .free)
    numbers.release(number)
    count -= 1
  }

  private func slot(_ number: UInt32) -> Slot {
    let index = Int(number) - 1
    return slots.indices.contains(index) ? slots[index] : .free
  }

  private mutating func set(_ number: UInt32, _ slot: Slot) { slots[Int(number) - 1] = slot }
}
