/// Reads the positions of a long frame a part at a time, so that their number doesn't decide how long a turn takes.
public struct PositionsReader: Sendable {
  /// Bytes of a frame's body from which on its positions are read in parts.
  package static let longBody = 32 << 10

  private let bytes: [UInt8]
  private var place = 0
  private var left: UInt32
  /// Whether more frames with positions follow.
  package let more: Bool

  /// - Parameter body: that of a POSITIONS frame.
  package init(body: UnsafeRawBufferPointer) throws(WireError) {
    var reader = unsafe ByteReader(body)
    let more: UInt8 = try reader.integer("POSITIONS more")
    try self.init(list: reader, more: more != 0)
  }

  /// - Parameter list: stands at the list of positions.
  init(list: ByteReader, more: Bool) throws(WireError) {
    var list = list
    left = try list.integer("POSITIONS")
    bytes = unsafe Array(list.remaining)
    self.more = more
  }

  package var isAtEnd: Bool { left == 0 }

  /// Bytes that the reader keeps.
  package var byteCount: Int { bytes.count }

  /// The next positions.
  ///
  /// - Parameter count: at most so many.
  package mutating func next(atMost count: Int) throws(WireError) -> [TopicPosition] {
    var positions: [TopicPosition] = []
    let count = min(count, Int(left))
    positions.reserveCapacity(min(count, bytes.count / TopicPosition.leastSize + 1))
    let place = place
    let end = try unsafe bytes.withUnsafeBytes { bytes in
      Result { () throws(WireError) in
        var reader = unsafe FieldReader(bytes: ByteReader(UnsafeRawBufferPointer(rebasing: bytes[place...])))
        for _ in 0..<count { positions.append(try reader.structure("position", TopicPosition.layout)) }
        if let refusal = reader.refusal { throw refusal }
        return bytes.count - reader.bytes.count
      }
    }.get()
    self.place = end
    left -= UInt32(count)
    return positions
  }
}

extension TopicPosition {
  /// Bytes of a position without a name.
  static let leastSize = 4 + 2 + 8 + 8
}
