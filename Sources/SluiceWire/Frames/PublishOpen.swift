/// PUBLISH_OPEN: opens a publication on a stream that isn't in use. Answered by ``PublishOpened`` or ``Fault``.
///
/// ```
/// string topic · u8 acknowledgement · u8 role (0 producer, 1 source, 2 requester) · u16 0 · u64 producer · u64 first sequence
/// settings · u64 known epoch · u64 known offset, both left out by a producer that knows none
/// ```
public struct PublishOpen: LaidOutFrame {
  public static let type = FrameType.publishOpen

  /// When the broker acknowledges a record.
  public enum Acknowledgement: UInt8, Hashable, Sendable {
    /// Never: only errors come back.
    case none = 0
    /// When it stands in the topic's log.
    case received = 1
    /// When it is on disk. Refused by a topic that keeps its records in memory only.
    case durable = 2
  }

  /// The publication's condition on the topic's subscribers. The number is the one on the wire.
  public enum Role: UInt8, Hashable, Sendable, CaseIterable {
    /// Nothing: records are taken whether the topic has subscribers or not.
    case producer = 0
    /// The broker reports when the topic is connected and when it no longer is: ``Connected``, ``Disconnected``.
    case source = 1
    /// At least one subscriber for every batch: without one the batch isn't taken, and ``ErrorCode/noResponders`` ends the publication. The topic
    /// isn't created.
    case requester = 2
  }

  public var topic: String
  public var acknowledgement: Acknowledgement
  public var role: Role
  /// The producer's number, so that a record which is sent again after a lost connection is in the log once; 0 for none.
  public var producer: UInt64
  /// The sequence of the first record that the producer still has, unacknowledged. At most ``largestFirstSequence``.
  public var firstSequence: UInt64
  /// The settings that the producer states for the topic: see ``TopicCreate``. All nil states nothing.
  public var settings: TopicSettings
  /// The epoch in which the producer's last acknowledged record is, and the offset behind it.
  public var known: KnownHistory

  /// Leaves room for more records than any producer publishes, and for grants beyond them.
  public static let largestFirstSequence: UInt64 = 1 << 62

  public init(
    topic: String, acknowledgement: Acknowledgement, role: Role = .producer, producer: UInt64 = 0,
    firstSequence: UInt64 = 0, settings: TopicSettings = TopicSettings(),
    known: KnownHistory = KnownHistory(epoch: 0, nextOffset: 0)
  ) {
    self.topic = topic
    self.acknowledgement = acknowledgement
    self.role = role
    self.producer = producer
    self.firstSequence = firstSequence
    self.settings = settings
    self.known = known
  }

  public static let layout = FrameLayout(
    Self.init, Field.name(.topic, "PUBLISH_OPEN topic", \Self.topic),
    Field.choice("PUBLISH_OPEN acknowledgement", \Self.acknowledgement, else: .none) {
      "PUBLISH_OPEN names acknowledgement \($0); 0 to 2 are defined"
    },
    Field.choice("PUBLISH_OPEN role", \Self.role, else: .producer) {
      "PUBLISH_OPEN names role \($0); 0 to 2 are defined"
    }.padded(reserved: ("PUBLISH_OPEN reserved", 2)),
    Field.integer("PUBLISH_OPEN producer", \Self.producer),
    Field.integer("PUBLISH_OPEN first sequence", \Self.firstSequence).refused {
      $0 <= largestFirstSequence
        ? nil
        : WireError(.unsupported, "PUBLISH_OPEN begins with sequence \($0); 2^62 is the largest")
    }, Field.settings(\Self.settings, unknown: .refuse), .known)
}

extension Field where Owner == PublishOpen, Value == KnownHistory {
  fileprivate static var known: Field {
    Field(
      write: { frame, writer in
        guard frame.known.epoch != 0 else { return }
        writer.integer(frame.known.epoch)
        writer.integer(frame.known.nextOffset)
      },
      read: { (reader: inout FieldReader) throws(WireError) in
        KnownHistory(
          epoch: try reader.bytes.integer("PUBLISH_OPEN known epoch"),
          nextOffset: try reader.bytes.integer("PUBLISH_OPEN known offset"))
      }
    ).added(absent: KnownHistory(epoch: 0, nextOffset: 0))
  }
}

/// PUBLISH_OPENED: the publication stands, with the demand to begin with.
///
/// ```
/// u64 epoch · u64 granted through · u64 bytes through · u64 next sequence · u64 lost from, left out when nothing is lost
/// ```
public struct PublishOpened: LaidOutFrame {
  public static let type = FrameType.publishOpened

  /// The topic's current epoch.
  public var epoch: UInt64
  /// As in ``Demand``: how many records may be published before more is granted.
  public var grantedThrough: UInt64
  /// As in ``Demand``: how many bytes of batches may be published before more is granted.
  public var bytesThrough: UInt64
  /// That of the first record to be published; all before it are acknowledged. At least what PUBLISH_OPEN began with.
  public var nextSequence: UInt64
  /// The first offset of the producer's ``PublishOpen/known`` history that the topic has lost, with all behind it; nil when it has lost none.
  public var lostFrom: UInt64?

  public init(
    epoch: UInt64, grantedThrough: UInt64, bytesThrough: UInt64 = Credit.unlimited, nextSequence: UInt64 = 0,
    lostFrom: UInt64? = nil
  ) {
    self.epoch = epoch
    self.grantedThrough = grantedThrough
    self.bytesThrough = bytesThrough
    self.nextSequence = nextSequence
    self.lostFrom = lostFrom
  }

  public static let layout = FrameLayout(
    Self.init, Field.integer("PUBLISH_OPENED epoch", \Self.epoch),
    Field.integer("PUBLISH_OPENED granted through", \Self.grantedThrough),
    Field.integer("PUBLISH_OPENED bytes through", \Self.bytesThrough),
    Field.integer("PUBLISH_OPENED next sequence", \Self.nextSequence), .lostFrom)
}

extension Field where Owner == PublishOpened, Value == UInt64? {
  fileprivate static var lostFrom: Field {
    Field(
      write: { frame, writer in if let offset = frame.lostFrom { writer.integer(offset) } },
      read: { (reader: inout FieldReader) throws(WireError) in
        let offset: UInt64 = try reader.bytes.integer("PUBLISH_OPENED lost from")
        return offset
      }
    ).added(absent: nil)
  }
}
