import SluiceStore
import SluiceWire

/// A producer as its topic's store keeps it, under its number (``StoredValue/key(_:)-(UInt64)``). Little-endian:
///
///     u8 version 1 · u64 next
struct StoredProducer: Hashable, Sendable {
  private static let version: UInt8 = 1
  /// Nobody publishes so much. Leaves room for what comes after it, and for grants.
  private static let largest: UInt64 = 1 << 63

  /// Which of its records is expected next.
  var next: UInt64

  init(next: UInt64) {
    self.next = next
  }

  func encoded() -> [UInt8] {
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
          .malformedFrame, "record \(next) is expected next, which is more than anybody publishes")
      }
      return next
    }
  }
}
