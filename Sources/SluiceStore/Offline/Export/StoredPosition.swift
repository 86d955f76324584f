import SluiceWire

/// Where a durable cursor, or a group, of an exported topic stands.
public struct StoredPosition: Hashable, Sendable {
  public var name: String
  public var isGroup: Bool
  /// The topic's life in which the offset is meant.
  public var epoch: UInt64
  /// The offset of the first record that isn't committed, or done.
  public var nextOffset: UInt64

  /// Nil for a state of another kind.
  ///
  /// - Throws: ``StoreError/Kind/damaged``, ``StoreError/Kind/newer``.
  public init?(_ state: StoredState) throws(StoreError) {
    guard state.kind == .cursor || state.kind == .group else { return nil }
    guard let name = String(validating: state.key, as: UTF8.self) else {
      throw StoreError(.damaged, "a name in the export isn't valid UTF-8")
    }
    self.name = name
    isGroup = state.kind == .group
    let result = unsafe state.value.withUnsafeBytes { [isGroup] bytes in
      Result { () throws(WireError) in try unsafe Self.place(bytes, isGroup: isGroup) }
    }
    do throws(WireError) {
      (epoch, nextOffset) = try result.get()
    } catch {
      throw StoreError(
        error.code == .unsupported ? .newer : .damaged, "where \(name) stands can't be read: \(error.message)"
      )
    }
  }

  /// A durable cursor's position.
  public init(cursor name: String, epoch: UInt64, nextOffset: UInt64) {
    self.name = name
    isGroup = false
    self.epoch = epoch
    self.nextOffset = nextOffset
  }

  /// The state of a durable cursor at this position; nil for a group, which has more to it.
  public var state: StoredState? {
    if isGroup { return nil }
    var writer = ByteWriter()
    writer.integer(UInt8(1))
    writer.integer(epoch)
    writer.integer(nextOffset)
    // No client has moved it.
    writer.integer(UInt8(0))
    return StoredState(.cursor, key: Array(name.utf8), value: writer.bytes)
  }

  /// Both begin with `u8 version · u64 epoch`, where version 2 of a group's state has more at its end. In a cursor's state the offset follows; in a group's it is behind `u64 seed · u32 length · settings`.
  private static func place(
    _ bytes: UnsafeRawBufferPointer, isGroup: Bool
  ) throws(WireError) -> (epoch: UInt64, nextOffset: UInt64) {
    var reader = unsafe ByteReader(bytes)
    let version: UInt8 = try reader.integer("version")
    let known: UInt8 = isGroup ? 2 : 1
    guard (1...known).contains(version) else {
      throw WireError(.unsupported, "it has version \(version), and this software knows \(known)")
    }
    let epoch: UInt64 = try reader.integer("epoch")
    if isGroup {
      _ = try reader.integer("seed", as: UInt64.self)
      let length: UInt32 = try reader.integer("settings")
      _ = unsafe try reader.bytes("settings", count: Int(length))
    }
    return (epoch, try reader.integer("next offset"))
  }
}
