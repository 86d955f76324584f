import SluiceTopics
import SluiceWire

/// Frames of another node that wait for a client's socket, in order.
///
/// Small frames are gathered in blocks; a batch of records is copied once, and that copy is written.
struct RelayedFrames {
  /// The most bytes of a block of frames.
  private static let blockSize = 16 << 10

  private enum Piece {
    case gathered([UInt8])
    case whole(HeldBytes)

    var count: Int {
      switch self {
      case .gathered(let frames): frames.count
      case .whole(let frame): unsafe frame.bytes.count
      }
    }
  }

  private var pieces = ReadyQueue<(Piece, records: UInt64)>()
  /// The block to which the next frame may be added.
  private var last: [UInt8] = []
  private var lastRecords: UInt64 = 0
  /// Bytes of all frames.
  private(set) var bytes = 0

  var isEmpty: Bool { bytes == 0 }

  mutating func append(_ frame: some Frame, stream: UInt32) {
    let length = last.count
    frame.encode(stream: stream, into: &last)
    bytes += last.count - length
  }

  /// Adds a frame with an encoded body.
  ///
  /// - Parameter records: the number of records in it.
  mutating func append(_ type: FrameType, _ body: UnsafeRawBufferPointer, records: UInt64, stream: UInt32) {
    let length = FrameHeader.size + body.count
    bytes += length
    guard length > Self.blockSize / 4 else {
      if last.count + length > Self.blockSize { closeBlock() }
      unsafe last.append(type, body, stream: stream)
      return lastRecords += records
    }
    closeBlock()
    pieces.append((.whole(unsafe HeldBytes(type, body, stream: stream)), records))
  }

  /// Moves the first frames to `writes`.
  ///
  /// - Returns: the number of records in them; nil when there are no frames.
  mutating func moveFirst(to writes: WriteBatch) -> UInt64? {
    if pieces.isEmpty { closeBlock() }
    guard let (piece, records) = pieces.popFirst() else { return nil }
    bytes -= piece.count
    switch piece {
    case .gathered(var frames): writes.append(&frames)
    case .whole(let frame): writes.append(frame)
    }
    return records
  }

  private mutating func closeBlock() {
    guard !last.isEmpty else { return }
    pieces.append((.gathered(last), lastRecords))
    last = []
    lastRecords = 0
  }
}
