/// Properties of a packet that outlive the packet's memory, in their encoding on the wire.
package struct MQTTProperties: Hashable, Sendable {
  /// The properties without their length.
  package private(set) var bytes: [UInt8] = []

  package init() {}

  /// A copy.
  package init(_ view: MQTTPropertyView) {
    unsafe bytes = Array(view.bytes)
  }

  /// The properties of a will, from ``bytes``; nil if they are invalid.
  package init?(willBytes bytes: [UInt8]) {
    let isValid = unsafe bytes.withUnsafeBytes { unsafe (try? MQTTPropertyView(bytes: $0, in: .will)) != nil }
    guard isValid else { return nil }
    self.bytes = bytes
  }

  package var isEmpty: Bool { bytes.isEmpty }

  // MARK: Reading

  /// Calls `body` with a view of the properties, valid during the call only.
  package func withView<Result>(_ body: (MQTTPropertyView) -> Result) -> Result {
    unsafe bytes.withUnsafeBytes { unsafe body(MQTTPropertyView(checked: $0)) }
  }

  package func number(_ property: MQTTProperty) -> UInt32? { withView { $0.number(property) } }

  package func string(_ property: MQTTProperty) -> String? {
    var found: String?
    withView { $0.forEachProperty { if $0.property == property { found = $0.string } } }
    return found
  }

  package func binary(_ property: MQTTProperty) -> [UInt8]? {
    var found: [UInt8]?
    withView { view in view.forEachProperty { if $0.property == property { found = unsafe Array($0.value) } }
    }
    return found
  }

  /// Names and values, in the order of the packet.
  package var userProperties: [(name: String, value: String)] {
    var pairs: [(name: String, value: String)] = []
    withView {
      $0.forEachProperty { if $0.property == .userProperty { pairs.append(($0.string, $0.secondString)) } }
    }
    return pairs
  }

  // MARK: Writing

  package mutating func append(_ property: MQTTProperty, _ number: UInt32) {
    var writer = MQTTWriter(bytes)
    bytes = []
    writer.byte(property.rawValue)
    switch property.kind {
    case .flag: writer.byte(UInt8(truncatingIfNeeded: number))
    case .short: writer.short(UInt16(truncatingIfNeeded: number))
    case .long: writer.long(number)
    default: writer.variable(number)
    }
    bytes = writer.bytes
  }

  package mutating func append(_ property: MQTTProperty, _ string: String) {
    var writer = MQTTWriter(bytes)
    bytes = []
    writer.byte(property.rawValue)
    writer.string(string)
    bytes = writer.bytes
  }

  package mutating func append(_ property: MQTTProperty, _ binary: [UInt8]) {
    var writer = MQTTWriter(bytes)
    writer.byte(property.rawValue)
    writer.binary(binary)
    bytes = writer.bytes
  }

  package mutating func append(user name: String, _ value: String) {
    var writer = MQTTWriter(bytes)
    writer.byte(MQTTProperty.userProperty.rawValue)
    writer.string(name)
    writer.string(value)
    bytes = writer.bytes
  }

  /// Appends a copy of another packet's property.
  package mutating func append(_ item: MQTTPropertyView.Item) {
    switch item.property.kind {
    case .flag, .short, .long, .variable: append(item.property, item.number)
    case .string, .binary: unsafe append(item.property, raw: item.value)
    case .pair: unsafe append(userName: item.value, raw: item.second)
    }
  }

  /// Appends without a copy, for properties that are sent with every message. Strings have at most 65,535 bytes.
  mutating func append(_ property: MQTTProperty, raw value: UnsafeRawBufferPointer) {
    bytes.append(property.rawValue)
    unsafe appendSized(value)
  }

  mutating func append(userName name: UnsafeRawBufferPointer, raw value: UnsafeRawBufferPointer) {
    bytes.append(MQTTProperty.userProperty.rawValue)
    unsafe appendSized(name)
    unsafe appendSized(value)
  }

  private mutating func appendSized(_ value: UnsafeRawBufferPointer) {
    bytes.append(UInt8(value.count >> 8))
    bytes.append(UInt8(value.count & 0xFF))
    unsafe bytes.append(contentsOf: value)
  }

  package mutating func removeAll() {
    if !bytes.isEmpty { bytes.removeAll(keepingCapacity: true) }
  }

  func encode(into writer: inout MQTTWriter) {
    writer.variable(UInt32(bytes.count))
    writer.bytes.append(contentsOf: bytes)
  }
}
