/// LIVE: replay is over, once per subscription; every record after this one was published after the subscription stood.
///
/// ```
/// u64 next offset
/// ```
public struct Live: Frame {
  public static let type = FrameType.live

  /// The offset of the first live record.
  public var nextOffset: UInt64

  public init(nextOffset: UInt64) {
    self.nextOffset = nextOffset
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(nextOffset)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    nextOffset = try reader.integer("LIVE next offset")
  }
}

/// LAG: records that the subscription was owed were dropped before it asked for them.
///
/// ```
/// u64 missed · u64 next offset
/// ```
public struct Lag: Frame {
  public static let type = FrameType.lag

  /// How many are missing between the last record delivered and the next.
  public var missed: UInt64
  /// The offset of the next record that will be delivered.
  public var nextOffset: UInt64

  public init(missed: UInt64, nextOffset: UInt64) {
    self.missed = missed
    self.nextOffset = nextOffset
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(missed)
    writer.integer(nextOffset)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    missed = try reader.integer("LAG missed")
    nextOffset = try reader.integer("LAG next offset")
  }
}

/// PRODUCERS: how many publications the topic of this subscription has. Only to a subscription that asked for it in ``Subscribe``.
///
/// ```
/// u32 count
/// ```
///
/// Comes behind SUBSCRIBED, and when the count has changed. Several changes in a short time may be told as one. It needs no demand.
public struct Producers: Frame {
  public static let type = FrameType.producers

  /// 0 means that there is none now, whether there was one before or not.
  public var count: UInt32

  public init(count: UInt32) {
    self.count = count
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(count)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    count = try reader.integer("PRODUCERS count")
  }
}

/// CONNECTED: the topic of this publication is connected, so that its source may start. Only to a publication that is a source, in turn with
/// ``Disconnected``; one of the two comes right behind PUBLISH_OPENED.
///
/// The body is empty. Demand comes by itself: a topic that isn't connected grants none.
public struct Connected: Frame {
  public static let type = FrameType.connected

  public init() {}

  public func encodeBody(into writer: inout ByteWriter) {}

  public init(body reader: inout ByteReader) throws(WireError) {}
}

/// DISCONNECTED: the topic isn't connected yet; or the last subscriber has left, or a client has disconnected it, and its source should stop.
/// What was granted before may still be published.
///
/// The body is empty.
public struct Disconnected: Frame {
  public static let type = FrameType.disconnected

  public init() {}

  public func encodeBody(into writer: inout ByteWriter) {}

  public init(body reader: inout ByteReader) throws(WireError) {}
}

/// COMPLETE: the topic's terminal event.
///
/// From a producer, on its publication: the topic ends after all records published on that stream before; answered by the
/// last ``Ack`` and ``Cancelled``. From the broker, on a subscription: after the last record that it is owed. From the broker,
/// on a publication: another producer has ended the topic. Either way the stream is over.
///
/// ```
/// u8 kind (0 finished, 1 failure) · 3 bytes 0 · u32 code · string message
/// ```
///
/// A failure's code and message are the producer's; the message has ``Limits/message`` bytes at most.
public struct Complete: Frame {
  public static let type = FrameType.complete

  public enum Ending: Hashable, Sendable {
    case finished
    case failure(code: ErrorCode, message: String)
  }

  public var ending: Ending

  public init(_ ending: Ending) {
    self.ending = ending
  }

  public func encodeBody(into writer: inout ByteWriter) {
    let (kind, code, message): (UInt32, UInt32, String) =
      switch ending {
      case .finished: (0, 0, "")
      case .failure(let code, let message): (1, code.rawValue, message)
      }
    writer.integer(kind)
    writer.integer(code)
    writer.string(message, limit: Limits.message)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    let kind: UInt8 = try reader.integer("COMPLETE kind")
    _ = try unsafe reader.bytes("COMPLETE reserved", count: 3)
    let code: UInt32 = try reader.integer("COMPLETE code")
    let message = try reader.string("COMPLETE message")
    switch kind {
    case 0: ending = .finished
    case 1: ending = .failure(code: ErrorCode(rawValue: code), message: message)
    default: throw WireError(.malformedFrame, "COMPLETE names kind \(kind); 0 and 1 are defined")
    }
  }
}
