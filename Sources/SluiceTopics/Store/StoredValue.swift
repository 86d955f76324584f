import SluiceStore
import SluiceWire

/// The common format of a topic's small states: a version comes first, and no bytes follow the last field.
enum StoredValue {
  /// Reads a whole value.
  ///
  /// - Parameters:
  ///   - what: its name, with an article, for errors.
  ///   - version: the only version that this software writes and reads.
  ///   - fields: reads the fields after the version.
  /// - Throws: ``StoreError/Kind/damaged``; ``StoreError/Kind/newer`` for a version that this software doesn't support.
  package static func decode<Value>(
    _ what: String, _ version: UInt8, _ bytes: [UInt8],
    _ fields: (inout ByteReader) throws(WireError) -> Value
  ) throws(StoreError) -> Value {
    try decode(what, version...version, bytes) { reader, _ throws(WireError) in try fields(&reader) }
  }

  /// Reads a value with several versions; `fields` gets the version.
  package static func decode<Value>(
    _ what: String, _ versions: ClosedRange<UInt8>, _ bytes: [UInt8],
    _ fields: (inout ByteReader, _ version: UInt8) throws(WireError) -> Value
  ) throws(StoreError) -> Value {
    let result = unsafe bytes.withUnsafeBytes { bytes -> Result<Value, WireError> in
      var reader = unsafe ByteReader(bytes)
      do throws(WireError) {
        let found: UInt8 = try reader.integer("version")
        guard versions.contains(found) else {
          throw WireError(
            .unsupported, "it has version \(found), and this software knows \(versions.upperBound)")
        }
        let value = try fields(&reader, found)
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

  /// The key of a state that is identified by a name.
  package static func key(_ name: String) -> [UInt8] { Array(name.utf8) }

  /// - Throws: ``StoreError/Kind/damaged`` for a key that isn't a name.
  package static func name(_ key: [UInt8]) throws(StoreError) -> String {
    guard let name = String(validating: key, as: UTF8.self) else {
      throw StoreError(.damaged, "a name in the store isn't valid UTF-8")
    }
    return name
  }

  /// The key of a state that is identified by a number: big-endian, so that keys are in the order of numbers.
  package static func key(_ number: UInt64) -> [UInt8] {
    unsafe withUnsafeBytes(of: number.bigEndian) { unsafe Array($0) }
  }

  /// - Throws: ``StoreError/Kind/damaged`` for a key that isn't a number.
  package static func number(_ key: [UInt8]) throws(StoreError) -> UInt64 {
    guard key.count == 8 else {
      throw StoreError(.damaged, "a number in the store has \(key.count) bytes where 8 are due")
    }
    return key.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
