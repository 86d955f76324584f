/// Values by the names of identities, which are compared byte by byte.
///
/// Two `String`s are equal when Unicode calls them equivalent: the Kelvin sign is a K then, and an issuer of certificates or tokens may
/// not know it. Here they are two names.
public struct NameTable<Value: Sendable>: Sendable, ExpressibleByDictionaryLiteral {
  private var values: [IdentityName: Value] = [:]

  public init() {}

  /// The last one of a name counts.
  public init(dictionaryLiteral elements: (String, Value)...) {
    for (name, value) in elements { self[name] = value }
  }

  public subscript(name: String) -> Value? {
    get { values[IdentityName(name)] }
    set { values[IdentityName(name)] = newValue }
  }

  public subscript(name: String, default value: @autoclosure () -> Value) -> Value {
    get { self[name] ?? value() }
    set { self[name] = newValue }
  }

  public var isEmpty: Bool { values.isEmpty }
  public var count: Int { values.count }

  /// In no order.
  public var names: [String] { values.keys.map(\.text) }
  /// In no order.
  public var all: some Sequence<Value> { values.values }
}

/// A name by its bytes.
private struct IdentityName: Hashable, Sendable {
  let text: String

  init(_ text: String) {
    self.text = text
  }

  static func == (left: Self, right: Self) -> Bool {
    left.text.utf8.elementsEqual(right.text.utf8)
  }

  func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { unsafe hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}
