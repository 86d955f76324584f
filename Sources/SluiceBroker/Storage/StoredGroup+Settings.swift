import SluiceWire

/// A group's settings on disk, little-endian, where a text is a u16 length and UTF-8:
///
///     5 × u8 0 · u8 acknowledgement · u8 order · 9 × u8 0 · u32 deadline · u32 deliveries · text dead letters · u64 0
///     u8 conditions × (u8 subject · u8 test · text header · u16 length · value)
///
/// The numbers are those of JOIN. The layout is the store's own: JOIN may change without it.
extension JoinGroup.Settings {
  func encodeStored(into writer: inout ByteWriter) {
    writer.bytes += [UInt8](repeating: 0, count: 5)
    writer.integer(acknowledgement.rawValue)
    writer.integer(order.rawValue)
    writer.bytes += [UInt8](repeating: 0, count: 9)
    writer.integer(deadline)
    writer.integer(deliveries)
    writer.string(deadLetters)
    writer.integer(UInt64(0))
    writer.integer(UInt8(clamping: filter.conditions.count))
    for condition in filter.conditions { condition.encode(into: &writer) }
  }

  init(decodingStored reader: inout ByteReader) throws(WireError) {
    _ = try unsafe reader.bytes("settings", count: 5)
    let acknowledgement: UInt8 = try reader.integer("acknowledgement")
    let order: UInt8 = try reader.integer("order")
    _ = try unsafe reader.bytes("settings", count: 9)
    guard let acknowledgement = JoinGroup.Acknowledgement(rawValue: acknowledgement),
      let order = JoinGroup.Order(rawValue: order)
    else {
      throw WireError(.unsupported, "acknowledgement \(acknowledgement) with order \(order) isn't known")
    }
    self.init(
      acknowledgement: acknowledgement, order: order, deadline: try reader.integer("deadline"),
      deliveries: try reader.integer("deliveries"), deadLetters: try reader.string("dead letters"))
    _ = try reader.integer("settings", as: UInt64.self)
    let count: UInt8 = try reader.integer("conditions")
    guard count <= RecordFilter.maximumConditions else {
      throw WireError(
        .malformedFrame,
        "\(count) conditions are more than the \(RecordFilter.maximumConditions) that there can be")
    }
    for _ in 0..<count { filter.conditions.append(try RecordFilter.Condition(from: &reader)) }
  }
}
