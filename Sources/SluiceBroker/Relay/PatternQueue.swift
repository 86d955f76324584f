import SluiceTopics
import SluiceWire

/// Frames of other nodes that wait to be written to the subscriber of a pattern, in the order of their arrival.
///
/// All nodes share one queue, so that the records of a topic that moves stay in order. Small frames about the same topic are gathered in blocks; a batch of
/// records is copied once, and that copy is written.
struct PatternQueue {
  /// The most bytes of a block of frames.
  private static let blockSize = 16 << 10

  /// An action to perform after the frames before it were written.
  enum Mark: Hashable {
    /// A node has announced all its topics from the beginning.
    case announced
    /// All topics of a node from the beginning are live.
    case live
    /// The subscription ends.
    case end(Fault)
  }

  struct Entry {
    var content: Content
    /// The index of the node's part.
    var part: Int
    var records: UInt64 = 0

    var bytes: Int {
      switch content {
      case .frames(_, let frames): unsafe frames.bytes.count
      case .mark: 0
      }
    }
  }

  enum Content {
    /// Frames about the topic with that number; 0 if they contain the number themselves.
    case frames(about: UInt32, HeldBytes)
    case mark(Mark)
  }

  private var entries = ReadyQueue<Entry>()
  /// The block to which the next frame may be added.
  private var last: [UInt8] = []
  private var lastAbout: UInt32 = 0
  private var lastPart = 0
  private var lastRecords: UInt64 = 0
  /// Bytes of all frames.
  private(set) var bytes = 0
  /// The number of the last entry that was added, and of the last that was removed.
  private(set) var added: UInt64 = 0
  private(set) var taken: UInt64 = 0

  var isEmpty: Bool { entries.isEmpty && last.isEmpty }

  mutating func append(_ mark: Mark, part: Int) {
    closeBlock()
    push(Entry(content: .mark(mark), part: part))
  }

  /// Adds a frame that contains the number of its topic.
  mutating func append(_ frame: some Frame, part: Int, stream: UInt32) {
    gather(about: 0, part)
    let length = last.count
    frame.encode(stream: stream, into: &last)
    bytes += last.count - length
    if last.count > Self.blockSize { closeBlock() }
  }

  /// Adds a frame with an encoded body.
  ///
  /// - Parameters:
  ///   - number: the number of its topic.
  ///   - records: the number of records in it.
  mutating func append(
    _ type: FrameType, _ body: UnsafeRawBufferPointer, about number: UInt32, records: UInt64, part: Int,
    stream: UInt32
  ) {
    let length = FrameHeader.size + body.count
    bytes += length
    guard length > Self.blockSize / 4 else {
      gather(about: number, part)
      if last.count + length > Self.blockSize { closeBlock() }
      (lastAbout, lastPart) = (number, part)
      unsafe last.append(type, body, stream: stream)
      return lastRecords += records
    }
    closeBlock()
    let frame = unsafe HeldBytes(type, body, stream: stream)
    push(Entry(content: .frames(about: number, frame), part: part, records: records))
  }

  mutating func popFirst() -> Entry? {
    if entries.isEmpty { closeBlock() }
    guard let entry = entries.popFirst() else { return nil }
    bytes -= entry.bytes
    taken += 1
    return entry
  }

  /// Closes the block of gathered frames, so that ``added`` counts it.
  mutating func closeBlock() {
    guard !last.isEmpty else { return }
    let frames = unsafe last.withUnsafeBytes { unsafe HeldBytes(copying: $0) }
    push(Entry(content: .frames(about: lastAbout, frames), part: lastPart, records: lastRecords))
    last.removeAll(keepingCapacity: true)
    lastRecords = 0
  }

  /// Continues the block if the next frame is about the same topic and part; otherwise begins a new one.
  private mutating func gather(about number: UInt32, _ part: Int) {
    if lastAbout != number || lastPart != part { closeBlock() }
    (lastAbout, lastPart) = (number, part)
  }

  private mutating func push(_ entry: Entry) {
    entries.append(entry)
    added += 1
  }
}
