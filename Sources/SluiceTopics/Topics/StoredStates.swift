import SluiceStore
import SluiceWire

/// A producer as its topic's store keeps it, under its number (``StoredValue/key(_:)-(UInt64)``). Little-endian:
///
///     u8 version 1 · u64 next
struct StoredProducer: Hashable, Sendable {
  private static let version: UInt8 = 1
  /// More than any producer publishes. Leaves room for later sequences, and for grants.
  private static let largest: UInt64 = 1 << 63

  /// The next expected sequence.
  package var next: UInt64

  init(next: UInt64) {
    self.next = next
  }

  package func encoded() -> [UInt8] {
    var writer = ByteWriter()
    writer.integer(Self.version)
    writer.integer(next)
    return writer.bytes
  }

  /// - Throws: ``StoreError/Kind/damaged``, ``StoreError/Kind/newer``.
  init(decoding bytes: [UInt8]) throws(StoreError) {
    next = try StoredValue.decode("a producer's state", Self.version, bytes) {
      reader throws(WireError) in
      let next: UInt64 = try reader.integer("next")
      guard next <= Self.largest else {
        throw WireError(
          .malformedFrame, "record \(next) is expected next, which is more than any producer publishes")
      }
      return next
    }
  }
}

/// A durable cursor as its topic's store keeps it, under its name (``StoredValue/key(_:)-(String)``). Little-endian:
///
///     u8 version 1 · u64 epoch · u64 next offset · u8 1 when it was moved and no subscriber has begun there yet, else 0
struct StoredCursor: Hashable, Sendable {
  private static let version: UInt8 = 1

  package var found: CursorTable.Finding

  init(_ found: CursorTable.Finding) {
    self.found = found
  }

  package func encoded() -> [UInt8] {
    var writer = ByteWriter()
    writer.integer(Self.version)
    writer.integer(found.place.epoch)
    writer.integer(found.place.nextOffset)
    writer.integer(UInt8(found.isMoved ? 1 : 0))
    return writer.bytes
  }

  /// - Throws: ``StoreError/Kind/damaged``, ``StoreError/Kind/newer``.
  init(decoding bytes: [UInt8]) throws(StoreError) {
    self = try StoredValue.decode("a cursor's state", Self.version, bytes) { reader throws(WireError) in
      let place = CursorTable.Place(
        epoch: try reader.integer("epoch"), nextOffset: try reader.integer("next offset"))
      let moved: UInt8 = try reader.integer("moved")
      guard moved <= 1 else { throw WireError(.malformedFrame, "whether it was moved is \(moved)") }
      return StoredCursor(.init(place: place, isMoved: moved == 1))
    }
  }
}
