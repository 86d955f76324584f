/// A packet's properties, in place and checked.
///
/// Valid only as long as the memory from which it was made.
@safe
package struct MQTTPropertyView {
  /// The properties without their length.
  package let bytes: UnsafeRawBufferPointer

  /// No properties.
  package static var none: MQTTPropertyView {
    unsafe MQTTPropertyView(checked: UnsafeRawBufferPointer(start: nil, count: 0))
  }

  init(checked bytes: UnsafeRawBufferPointer) {
    unsafe self.bytes = unsafe bytes
  }

  /// A property as encoded in the packet: a number, or one or two ranges of bytes.
  @safe
  package struct Item {
    package var property: MQTTProperty
    package var number: UInt32 = 0
    /// A string, binary data, or a pair's name.
    package var value: UnsafeRawBufferPointer
    /// A pair's value.
    package var second: UnsafeRawBufferPointer

    package var string: String { unsafe String(decoding: value, as: UTF8.self) }
    package var secondString: String { unsafe String(decoding: second, as: UTF8.self) }
  }

  /// Reads the length and the properties.
  ///
  /// - Throws: ``MQTTReason/malformedPacket`` for an unknown identifier, a property that isn't allowed there, or a value that isn't of its type;
  ///   ``MQTTReason/protocolError`` for a repeated property or a forbidden value.
  init(_ reader: inout MQTTReader, in place: MQTTPropertyPlaces) throws(MQTTError) {
    let length = try reader.variable("the properties' length")
    unsafe self.init(checked: try reader.bytes("the properties", Int(length)))
    guard length > 0 else { return }
    try check(in: place)
  }

  /// Reads properties without their length.
  ///
  /// - Throws: as ``init(_:in:)``.
  init(bytes: UnsafeRawBufferPointer, in place: MQTTPropertyPlaces) throws(MQTTError) {
    unsafe self.init(checked: bytes)
    try check(in: place)
  }

  private func check(in place: MQTTPropertyPlaces) throws(MQTTError) {
    var seen: UInt64 = 0
    var rest = unsafe MQTTReader(bytes)
    while rest.count > 0 {
      let item = try Self.next(&rest)
      let property = item.property
      guard property.places.contains(place) else {
        throw .malformed("the property \(property) doesn't belong into this packet")
      }
      let bit = UInt64(1) << UInt64(property.rawValue)
      guard seen & bit == 0 || property.repeats(in: place) else {
        throw .violation("the property \(property) comes more than once")
      }
      seen |= bit
      if property.isNeverZero, item.number == 0 {
        throw MQTTError(
          property == .topicAlias ? .topicAliasInvalid : .protocolError, "the property \(property) is 0")
      }
      if property.kind == .flag, item.number > 1 {
        throw .violation("the property \(property) is \(item.number); 0 and 1 are defined")
      }
      if property == .responseTopic {
        try unsafe MQTTText.checkTopicName(item.value, as: "the response topic")
      }
    }
    let method = UInt64(1) << UInt64(MQTTProperty.authenticationMethod.rawValue)
    let data = UInt64(1) << UInt64(MQTTProperty.authenticationData.rawValue)
    guard seen & data == 0 || seen & method != 0 else {
      throw .violation("there is authentication data without an authentication method")
    }
  }

  private static func next(_ reader: inout MQTTReader) throws(MQTTError) -> Item {
    let identifier = try reader.variable("a property's identifier")
    guard let property = UInt8(exactly: identifier).flatMap(MQTTProperty.init) else {
      throw .malformed("the property \(identifier) isn't defined")
    }
    let none = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    var item = unsafe Item(property: property, value: none, second: none)
    switch property.kind {
    case .flag: item.number = UInt32(try reader.byte("a property"))
    case .short: item.number = UInt32(try reader.short("a property"))
    case .long: item.number = try reader.long("a property")
    case .variable: item.number = try reader.variable("a property")
    case .string: unsafe item.value = try reader.text("a property")
    case .binary: unsafe item.value = try reader.binary("a property")
    case .pair:
      unsafe item.value = try reader.text("a user property's name")
      unsafe item.second = try reader.text("a user property's value")
    }
    return item
  }

  /// Calls `body` with each property, in the order of the packet.
  package func forEachProperty(_ body: (Item) -> Void) {
    var rest = unsafe MQTTReader(bytes)
    while rest.count > 0 {
      // The properties were checked when the view was made.
      guard let item = try? Self.next(&rest) else { return }
      body(item)
    }
  }

  /// The number of a property that isn't a string; nil if the packet doesn't contain it.
  package func number(_ property: MQTTProperty) -> UInt32? {
    guard unsafe !bytes.isEmpty else { return nil }
    var found: UInt32?
    forEachProperty { if $0.property == property, found == nil { found = $0.number } }
    return found
  }
}
