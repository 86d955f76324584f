import SluiceStore
import SluiceWire

/// A durable cursor as its topic's store keeps it, under its name (``StoredValue/key(_:)-(String)``). Little-endian:
///
///     u8 version 1 · u64 epoch · u64 next offset · u8 1 when it was moved and nobody has begun there yet, else 0
struct StoredCursor: Hashable, Sendable {
  private static let version: UInt8 = 1

  var found: CursorTable.Finding

  init(_ found: CursorTable.Finding) {
    self.found = found
  }

  func encoded() -> [UInt8] {
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
