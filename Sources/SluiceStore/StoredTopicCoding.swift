import SluiceWire

// As it is on disk, little-endian:
//
//     u8 version 1 · name · u8 settings × (u8 key · u64 value), of TOPIC_CREATE · u64 epoch · u64 ended by
//     u16 ancestors × (u64 epoch · u64 end)
//     u8 ending: 0 none, 1 finished, 2 failed (u32 code · message)
//     u8 flags, left out if 0: 1, the settings are defaults that no client has stated
//
// where a text is a u16 length and UTF-8.
extension StoredTopic {
  private static let version: UInt8 = 1

  public func encoded() -> [UInt8] {
    var writer = ByteWriter()
    writer.integer(Self.version)
    writer.string(name)
    let settings = settings.numbered
    writer.integer(UInt8(clamping: settings.count))
    for (key, value) in settings.prefix(Int(UInt8.max)) {
      writer.integer(UInt8(clamping: key))
      writer.integer(value)
    }
    writer.integer(epoch)
    writer.integer(endedBy)
    writer.integer(UInt16(clamping: lineage.count))
    for ancestor in lineage.suffix(Int(UInt16.max)) {
      writer.integer(ancestor.epoch)
      writer.integer(ancestor.end)
    }
    switch ending {
    case nil: writer.integer(UInt8(0))
    case .finished: writer.integer(UInt8(1))
    case .failure(let code, let message):
      writer.integer(UInt8(2))
      writer.integer(code.rawValue)
      writer.string(message)
    }
    if !isStated { writer.integer(UInt8(1)) }
    return writer.bytes
  }

  /// - Throws: ``StoreError/Kind/damaged``; ``StoreError/Kind/newer`` for a row that this version doesn't understand.
  public init(decoding bytes: UnsafeRawBufferPointer) throws(StoreError) {
    var reader = unsafe ByteReader(bytes)
    do throws(WireError) {
      let version: UInt8 = try reader.integer("version")
      guard version == Self.version else {
        throw WireError(.unsupported, "it has version \(version), and this software knows \(Self.version)")
      }
      let name = try reader.string("name")
      var settings = TopicSettings()
      for _ in 0..<(try reader.integer("settings", as: UInt8.self)) {
        let key = UInt16(try reader.integer("setting's key", as: UInt8.self))
        // A setting, or a value of one, that this version doesn't know is left alone.
        _ = settings.set(key, to: try reader.integer("setting's value"))
      }
      self.init(name: name, settings: settings, epoch: try reader.integer("epoch"))
      endedBy = try reader.integer("ended by")
      let count: UInt16 = try reader.integer("ancestors")
      for _ in 0..<count {
        let epoch: UInt64 = try reader.integer("ancestor's epoch")
        lineage.append(Ancestor(epoch: epoch, end: try reader.integer("ancestor's end")))
      }
      switch try reader.integer("ending", as: UInt8.self) {
      case 0: break
      case 1: ending = .finished
      case 2:
        let code = ErrorCode(rawValue: try reader.integer("failure's code"))
        ending = .failure(code: code, message: try reader.string("failure's message"))
      case let other: throw WireError(.malformedFrame, "an ending of kind \(other) isn't known")
      }
      if reader.count > 0 { isStated = try reader.integer("flags", as: UInt8.self) & 1 == 0 }
      guard reader.count == 0 else {
        throw WireError(.malformedFrame, "\(reader.count) bytes are left behind it")
      }
    } catch {
      throw StoreError(
        error.code == .unsupported ? .newer : .damaged, "a topic's row can't be read: \(error.message)")
    }
  }
}
