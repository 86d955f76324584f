import SluiceStore
import SluiceWire

/// What the small states of a topic have in common: a version comes first, and nothing is left behind the last field.
enum StoredValue {
  /// Reads a whole value.
  ///
  /// - Parameters:
  ///   - what: its name, with an article, for errors.
  ///   - version: the only one that this software writes and reads.
  ///   - fields: reads what follows the version.
  /// - Throws: ``StoreError/Kind/damaged``; ``StoreError/Kind/newer`` for what this version of the software doesn't know.
  static func decode<Value>(
    _ what: String, _ version: UInt8, _ bytes: [UInt8],
    _ fields: (inout ByteReader) throws(WireError) -> Value
  ) throws(StoreError) -> Value {
    let result = unsafe bytes.withUnsafeBytes { bytes -> Result<Value, WireError> in
      var reader = unsafe ByteReader(bytes)
      do throws(WireError) {
        let found: UInt8 = try reader.integer("version")
        guard found == version else {
          throw WireError(.unsupported, "it has version \(found), and this software knows \(version)")
        }
        let value = try fields(&reader)
        guard reader.count == 0 else {
          throw WireError(.malformedFrame, "\(reader.count) bytes are left behind it")
        }
        return .success(value)
      } catch {
        return .failure(error)
      }
    }
    do {
      return try result.get()
    } catch {
      throw StoreError(
        error.code == .unsupported ? .newer : .damaged, "\(what) can't be read: \(error.message)")
    }
  }

  /// The key of what is known by a name.
  static func key(_ name: String) -> [UInt8] { Array(name.utf8) }

  /// - Throws: ``StoreError/Kind/damaged`` for a key that is no name's.
  static func name(_ key: [UInt8]) throws(StoreError) -> String {
    guard let name = String(validating: key, as: UTF8.self) else {
      throw StoreError(.damaged, "a name in the store isn't valid UTF-8")
    }
    return name
  }

  /// The key of what is known by a number: big-endian, so that keys are in the order of numbers.
  static func key(_ number: UInt64) -> [UInt8] {
    unsafe withUnsafeBytes(of: number.bigEndian) { unsafe Array($0) }
  }

  /// - Throws: ``StoreError/Kind/damaged`` for a key that is no number's.
  static func number(_ key: [UInt8]) throws(StoreError) -> UInt64 {
    guard key.count == 8 else {
      throw StoreError(.damaged, "a number in the store has \(key.count) bytes where 8 are due")
    }
    return key.reduce(0) { $0 << 8 | UInt64($1) }
  }
}

extension ByteWriter {
  /// Seven bits a byte, the lowest first; the highest bit says that more follow.
  mutating func compact(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      integer(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    integer(UInt8(rest))
  }
}

extension ByteReader {
  mutating func compact(_ what: StaticString) throws(WireError) -> UInt64 {
    var value: UInt64 = 0
    for shift in stride(from: 0, to: 64, by: 7) {
      let byte: UInt8 = try integer(what)
      // The tenth has room for a single bit.
      if shift == 63, byte > 1 { break }
      value |= UInt64(byte & 0x7F) << UInt64(shift)
      if byte < 0x80 { return value }
    }
    throw WireError(.malformedFrame, "\(what) doesn't fit in 64 bits")
  }
}

/// A producer as its topic's store keeps it, under its number (``StoredValue/key(_:)-(UInt64)``). Little-endian:
///
///     u8 version 1 · u64 next
struct StoredProducer: Hashable, Sendable {
  private static let version: UInt8 = 1
  /// More than any producer publishes. Leaves room for what comes after it, and for grants.
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
