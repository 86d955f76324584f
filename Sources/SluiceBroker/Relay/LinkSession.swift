import SluiceSession
import SluiceWire

/// A user of one stream number of a link. Belongs to the link's loop.
protocol LinkedStream: AnyObject {
  /// The topic that the other node serves.
  var topic: String { get }

  /// Handles a frame of the topic's owner.
  ///
  /// - Parameter body: valid during the call only.
  /// - Returns: whether it is the last frame of the stream, after which its number is free.
  /// - Throws: a protocol violation of the owner, which ends the link.
  func receive(_ type: FrameType, _ body: UnsafeRawBufferPointer) throws(WireError) -> Bool

  /// Returns its number to the link, after a CANCEL if necessary.
  func leaveOwner()

  /// Ends the stream with this error because the link was lost, or the topic has left the node. The stream has no number any more.
  func lost(_ fault: Fault)
}

/// A node's side of a connection to another node: the handshake, and the streams by number.
///
/// A value without I/O and without a clock. It retains the objects of the streams and never calls them. A thrown error is a protocol violation of the other
/// node and ends the connection.
struct LinkSession {
  enum Phase: Hashable {
    /// Waiting for WELCOME.
    case handshake
    case open
    /// The other node has sent GOAWAY: open streams continue, and no new ones are opened.
    case leaving
  }

  /// How to handle a frame.
  @safe
  enum Action {
    /// Ignore it: the stream was cancelled, or the frame is unknown and may be skipped.
    case none
    case opened(Welcome)
    /// Pass the frame to this stream.
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
    /// CANCEL was sent. Frames before CANCELLED are dropped.
    case cancelling
    /// COMPLETE was sent, and no object waits for the result: all frames of the owner, including the last one, are dropped.
    case completing
    /// The owner has sent the stream's last frame, and this node may still send frames on it.
    case kept
  }

  private(set) var phase = Phase.handshake
  private var slots: [Slot] = []
  private var numbers = StreamNumbers()
  /// The number of stream numbers in use.
  private(set) var count = 0

  // MARK: Frames in

  /// Handles one frame.
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

  /// Notes that CANCEL is sent. The stream gets no more frames.
  mutating func cancel(_ number: UInt32) { set(number, .cancelling) }

  /// Notes that COMPLETE was sent. The stream gets no more frames.
  mutating func leaveCompleting(_ number: UInt32) { set(number, .completing) }

  /// Keeps the stream's number in use after the owner's last frame.
  mutating func keep(_ number: UInt32) { set(number, .kept) }

  /// Frees the number of a stream that has ended on both sides.
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
