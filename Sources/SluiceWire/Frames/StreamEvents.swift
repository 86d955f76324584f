/// LIVE: the end of replay, once per subscription; every record after this one was published after the subscription was
/// open.
///
/// ```
/// u64 next offset
/// ```
public struct Live: LaidOutFrame {
  public static let type = FrameType.live

  /// The offset of the first live record.
  public var nextOffset: UInt64

  public init(nextOffset: UInt64) {
    self.nextOffset = nextOffset
  }

  public static let layout = FrameLayout(Self.init, Field.integer("LIVE next offset", \Self.nextOffset))
}

/// LAG: records were dropped before the subscription requested them.
///
/// ```
/// u64 missed · u64 next offset
/// ```
public struct Lag: LaidOutFrame {
  public static let type = FrameType.lag

  /// How many are missing between the last record delivered and the next.
  public var missed: UInt64
  /// The offset of the next record that will be delivered.
  public var nextOffset: UInt64

  public init(missed: UInt64, nextOffset: UInt64) {
    self.missed = missed
    self.nextOffset = nextOffset
  }

  public static let layout = FrameLayout(
    Self.init, Field.integer("LAG missed", \Self.missed),
    Field.integer("LAG next offset", \Self.nextOffset))
}

/// PRODUCERS: how many publications the topic of this subscription has. Only to a subscription that asked for it in ``Subscribe``.
///
/// ```
/// u32 count
/// ```
///
/// Comes behind SUBSCRIBED, and when the count has changed. Several changes within a short time may be reported as one. It needs no
/// demand.
public struct Producers: LaidOutFrame {
  public static let type = FrameType.producers

  /// 0 means that there is none now, whether there was one before or not.
  public var count: UInt32

  public init(count: UInt32) {
    self.count = count
  }

  public static let layout = FrameLayout(Self.init, Field.integer("PRODUCERS count", \Self.count))
}

/// CONNECTED: the topic of this publication is connected, so that its source may start. Only to a publication that is a source, in turn with
/// ``Disconnected``; one of the two comes right behind PUBLISH_OPENED.
///
/// The body is empty. Demand comes by itself: a topic that isn't connected grants none.
public struct Connected: LaidOutFrame {
  public static let type = FrameType.connected

  public init() {}

  public static let layout = FrameLayout(Self.init)
}

/// DISCONNECTED: the topic isn't connected yet; or the last subscriber has left, or a client has disconnected it, and its source should stop.
/// Records granted before may still be published.
///
/// The body is empty.
public struct Disconnected: LaidOutFrame {
  public static let type = FrameType.disconnected

  public init() {}

  public static let layout = FrameLayout(Self.init)
}

/// COMPLETE: the topic's terminal event.
///
/// From a producer, on its publication: the topic ends after all records published on that stream before; answered by the last
/// ``Ack`` and ``Cancelled``. From the broker, on a subscription: after its last record. From the broker, on a publication:
/// another producer has ended the topic. Either way the stream ends.
///
/// ```
/// u8 kind (0 finished, 1 failure) · 3 bytes 0 · u32 code · string message
/// ```
///
/// A failure's code and message are the producer's; the message has ``Limits/message`` bytes at most.
public struct Complete: LaidOutFrame {
  public static let type = FrameType.complete

  public enum Ending: Hashable, Sendable {
    case finished
    case failure(code: ErrorCode, message: String)
  }

  public var ending: Ending

  public init(_ ending: Ending) {
    self.ending = ending
  }

  public static let layout = FrameLayout(
    { Self(Ending(kind: $0, code: $1, message: $2)) },
    Field.integer("COMPLETE kind", \Self.ending.kind).padded(reserved: ("COMPLETE reserved", 3)).refused {
      $0 < 2 ? nil : WireError(.malformedFrame, "COMPLETE names kind \($0); 0 and 1 are defined")
    }, Field.number("COMPLETE code", \Self.ending.code),
    Field.string("COMPLETE message", limit: Limits.message, \Self.ending.message))
}

extension Complete.Ending {
  /// A number that isn't 0 is that of a failure.
  init(kind: UInt8, code: ErrorCode, message: String) {
    self = kind == 0 ? .finished : .failure(code: code, message: message)
  }

  var kind: UInt8 { if case .finished = self { 0 } else { 1 } }
  /// 0 if there is no failure.
  var code: ErrorCode { if case .failure(let code, _) = self { code } else { ErrorCode(0) } }
  var message: String { if case .failure(_, let message) = self { message } else { "" } }
}
