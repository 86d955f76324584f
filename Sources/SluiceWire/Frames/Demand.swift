/// DEMAND: how many records the receiver of this frame may have sent on this stream, in all, since it was opened.
///
/// A client sends it for its subscriptions, a broker for publications. The number is cumulative and the receiver keeps
/// the largest, so a repeated or reordered frame changes nothing. All ones means unlimited. A grant of 0 is an error
/// of the stream, ``ErrorCode/invalidDemand``.
///
/// A broker's grant to a publication may also be limited by bytes: the total size of the batches published on the stream. As long as that number
/// isn't reached, one more record may be published, however large; so a limit never stands in the way of a record that is larger. The number has
/// the rules of the other one; a client has no use for it and sends all ones.
///
/// ```
/// u64 granted through · u64 bytes through
/// ```
public struct Demand: Frame {
  public static let type = FrameType.demand

  public var grantedThrough: UInt64
  /// Bytes of batches that may be published in all; ``Credit/unlimited`` for any number, as always on a subscription.
  public var bytesThrough: UInt64

  public init(grantedThrough: UInt64, bytesThrough: UInt64 = Credit.unlimited) {
    self.grantedThrough = grantedThrough
    self.bytesThrough = bytesThrough
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(grantedThrough)
    writer.integer(bytesThrough)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    grantedThrough = try reader.integer("DEMAND granted through")
    bytesThrough = try reader.integer("DEMAND bytes through")
  }
}

/// ACK: the broker has taken over records of a publication.
///
/// ```
/// u64 through · u64 last offset
/// ```
public struct Ack: Frame {
  public static let type = FrameType.ack

  /// How many records of this publication are acknowledged, in all. Cumulative, like a grant.
  public var through: UInt64
  /// The offset in the topic of the last of them.
  public var lastOffset: UInt64

  public init(through: UInt64, lastOffset: UInt64) {
    self.through = through
    self.lastOffset = lastOffset
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(through)
    writer.integer(lastOffset)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    through = try reader.integer("ACK through")
    lastOffset = try reader.integer("ACK last offset")
  }
}

/// CANCEL: the client wants nothing more on this stream, of whatever kind. Always answered by
/// ``Cancelled``, even when the stream has ended meanwhile, so that its number can be used again.
///
/// The body is empty.
public struct Cancel: LaidOutFrame {
  public static let type = FrameType.cancel

  public init() {}

  public static let layout = FrameLayout(Self.init)
}

/// CANCELLED: nothing more comes on this stream, and its number is free. Answers ``Cancel``, and the ``Complete`` of a
/// publication.
///
/// ```
/// u8 flags (1: the topic has started over)
/// ```
public struct Cancelled: LaidOutFrame {
  public static let type = FrameType.cancelled

  /// Whether the topic that a publication has ended has started over, so that more can be published to it.
  public var hasStartedOver: Bool

  public init(hasStartedOver: Bool = false) {
    self.hasStartedOver = hasStartedOver
  }

  public static let layout = FrameLayout(
    Self.init, Field.flag("CANCELLED flags", mask: 1, \Self.hasStartedOver))
}

// Acknowledgements and grants go with single records: they are put together at once, without a writer.
extension Demand {
  public func encode(stream: UInt32, into output: inout [UInt8]) {
    output.append(Self.type, stream, grantedThrough, bytesThrough)
  }
}

extension Ack {
  public func encode(stream: UInt32, into output: inout [UInt8]) {
    output.append(Self.type, stream, through, lastOffset)
  }
}

extension [UInt8] {
  /// Appends a frame of two numbers.
  fileprivate mutating func append(_ type: FrameType, _ stream: UInt32, _ first: UInt64, _ second: UInt64) {
    let size = FrameHeader.size + 16
    unsafe withUnsafeTemporaryAllocation(byteCount: size, alignment: 8) { bytes in
      guard let base = bytes.baseAddress else { return }
      unsafe FrameHeader(length: 16, type: type, stream: stream).write(at: base)
      unsafe base.storeBytes(of: first.littleEndian, toByteOffset: FrameHeader.size, as: UInt64.self)
      unsafe base.storeBytes(of: second.littleEndian, toByteOffset: FrameHeader.size + 8, as: UInt64.self)
      unsafe append(contentsOf: bytes)
    }
  }
}
