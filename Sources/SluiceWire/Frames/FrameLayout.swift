/// A frame with one list of its fields, by which its body is both written and read.
public protocol LaidOutFrame: Frame {
  static var layout: FrameLayout<Self> { get }
}

extension LaidOutFrame {
  public var names: [FrameName] {
    var names: [FrameName] = []
    try? Self.layout.visitNames(self) { names.append($0) }
    return names
  }

  public func validateNames() throws(WireError) {
    try Self.layout.visitNames(self) { (name) throws(WireError) in try name.validate() }
  }

  public func encodeBody(into writer: inout ByteWriter) {
    Self.layout.write(self, &writer)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    self = try Self.layout.decode(&reader)
  }
}

/// Calls a closure with each name in a value, until it throws.
typealias NameVisit<Owner> =
  @Sendable (Owner, (FrameName) throws(WireError) -> Void) throws(WireError) -> Void

/// The fields of a frame's body, or of a structure in one, in their order.
///
/// All of them are read before what they ask for is judged: a body that is cut short is malformed whatever that is.
public struct FrameLayout<Owner>: Sendable {
  let write: @Sendable (Owner, inout ByteWriter) -> Void
  let read: @Sendable (inout FieldReader) throws(WireError) -> Owner
  let visitNames: NameVisit<Owner>

  /// - Parameters:
  ///   - make: makes a value of its fields.
  ///   - fields: in the order in which they travel.
  init<each Value>(
    _ make: @escaping @Sendable (repeat each Value) -> Owner, _ fields: repeat Field<Owner, each Value>
  ) {
    write = { owner, writer in repeat (each fields).write(owner, &writer) }
    read = { (reader: inout FieldReader) throws(WireError) in try make(repeat (each fields).read(&reader)) }
    visitNames = { owner, body throws(WireError) in
      repeat try (each fields).visitNames(owner, body)
    }
  }

  /// Reads a value, and nothing behind it.
  func decode(_ bytes: inout ByteReader) throws(WireError) -> Owner {
    var reader = FieldReader(bytes: bytes)
    let owner = try read(&reader)
    bytes = reader.bytes
    if let refusal = reader.refusal { throw refusal }
    return owner
  }
}

/// Reads fields, and keeps why the frame is refused until all of them are read.
struct FieldReader {
  var bytes: ByteReader
  /// The first reason; nil for a frame that can be taken.
  var refusal: WireError?

  /// Keeps an error until the end; throws one of a malformed body at once.
  mutating func refuse(_ error: WireError?) throws(WireError) {
    if let error, error.code == .malformedFrame { throw error }
    refusal = refusal ?? error
  }

  /// A structure: a `u32` size, and as many bytes, of which what isn't known stands at the end.
  mutating func structure<Owner>(
    _ what: StaticString, _ layout: FrameLayout<Owner>
  ) throws(WireError) -> Owner {
    var reader = FieldReader(bytes: try bytes.structure(what))
    let owner = try layout.read(&reader)
    try refuse(reader.refusal)
    return owner
  }
}

/// One field: how it is written and read, and the names in it.
struct Field<Owner, Value>: Sendable {
  var write: @Sendable (Owner, inout ByteWriter) -> Void
  var read: @Sendable (inout FieldReader) throws(WireError) -> Value
  var visitNames: NameVisit<Owner> = { _, _ in }
}

// Parameter names: `what`, for the error of a field that is cut short; `get`, for the property of its owner.
extension Field {
  static func integer(
    _ what: StaticString, _ get: @escaping @Sendable (Owner) -> Value
  ) -> Field where Value: FixedWidthInteger & BitwiseCopyable & SendableMetatype {
    Field(
      write: { $1.integer(get($0)) },
      read: { (reader: inout FieldReader) throws(WireError) in try reader.bytes.integer(what) })
  }

  /// A number that stands for a value, whichever it is.
  static func number<Number: FixedWidthInteger & BitwiseCopyable & SendableMetatype>(
    _ what: StaticString, _ get: @escaping @Sendable (Owner) -> Value
  ) -> Field where Value: RawRepresentable<Number> & SendableMetatype {
    Field(
      write: { $1.integer(get($0).rawValue) },
      read: { (reader: inout FieldReader) throws(WireError) in
        Value(rawValue: try reader.bytes.integer(what))!
      })
  }

  /// A number that stands for a value. One that isn't defined is refused.
  ///
  /// - Parameters:
  ///   - other: the value that is read in its place.
  ///   - code: with which it is refused.
  ///   - message: the error for an invalid number.
  static func choice<Number: FixedWidthInteger & BitwiseCopyable & SendableMetatype>(
    _ what: StaticString, _ get: @escaping @Sendable (Owner) -> Value, else other: Value,
    _ code: ErrorCode = .unsupported, _ message: @escaping @Sendable (Number) -> String
  ) -> Field where Value: RawRepresentable<Number> & Sendable & SendableMetatype {
    Field(
      write: { $1.integer(get($0).rawValue) },
      read: { (reader: inout FieldReader) throws(WireError) in
        let number: Number = try reader.bytes.integer(what)
        if let value = Value(rawValue: number) { return value }
        try reader.refuse(WireError(code, message(number)))
        return other
      })
  }

  /// - Parameter limit: the length to which the writer cuts it, in bytes.
  static func string(
    _ what: StaticString, limit: UInt16 = .max, _ get: @escaping @Sendable (Owner) -> String
  ) -> Field where Value == String {
    Field(
      write: { $1.string(get($0), limit: limit) },
      read: { (reader: inout FieldReader) throws(WireError) in try reader.bytes.string(what) })
  }

  /// A text by which a client asks for something.
  static func name(
    _ kind: FrameName.Kind, _ what: StaticString, isOptional: Bool = false,
    _ get: @escaping @Sendable (Owner) -> String
  ) -> Field where Value == String {
    var field = string(what, get)
    field.visitNames = { owner, body throws(WireError) in
      try body(FrameName(kind, get(owner), isOptional: isOptional))
    }
    return field
  }

  /// A byte that is 1 or 0.
  ///
  /// - Parameter mask: the bits that count.
  static func flag(
    _ what: StaticString, mask: UInt8 = .max, _ get: @escaping @Sendable (Owner) -> Bool
  ) -> Field where Value == Bool {
    Field(
      write: { $1.integer(get($0) ? 1 : 0 as UInt8) },
      read: { (reader: inout FieldReader) throws(WireError) in
        try reader.bytes.integer(what, as: UInt8.self) & mask != 0
      })
  }

  /// The fields of another layout.
  ///
  /// - Parameter visitNames: visits the names in these fields, if any.
  static func part(
    _ get: @escaping @Sendable (Owner) -> Value, _ layout: FrameLayout<Value>,
    visitNames: @escaping NameVisit<Owner> = { _, _ in }
  ) -> Field {
    Field(write: { layout.write(get($0), &$1) }, read: layout.read, visitNames: visitNames)
  }

  static func structure(
    _ what: StaticString, _ get: @escaping @Sendable (Owner) -> Value, _ layout: FrameLayout<Value>
  ) -> Field {
    Field(
      write: { owner, writer in writer.structure { layout.write(get(owner), &$0) } },
      read: { (reader: inout FieldReader) throws(WireError) in try reader.structure(what, layout) })
  }

  static func list<Element>(
    _ what: StaticString, _ get: @escaping @Sendable (Owner) -> [Element], _ layout: FrameLayout<Element>
  ) -> Field where Value == [Element] {
    Field(
      write: { $1.list(get($0), layout.write) },
      read: { (reader: inout FieldReader) throws(WireError) in
        var elements: [Element] = []
        for _ in 0..<(try reader.bytes.integer(what, as: UInt32.self)) {
          elements.append(try reader.structure(what, layout))
        }
        return elements
      },
      visitNames: { owner, body throws(WireError) in
        for element in get(owner) { try layout.visitNames(element, body) }
      })
  }

  /// The same field between what has no meaning to its owner.
  ///
  /// - Parameters:
  ///   - magic: the number in front of it that a peer has to send.
  ///   - reserved: how many bytes that are 0 follow it.
  func padded(magic: StaticString? = nil, reserved: (what: StaticString, count: Int)? = nil) -> Field {
    Field(
      write: { owner, writer in
        if magic != nil { writer.integer(Hello.magic) }
        write(owner, &writer)
        if let reserved { writer.bytes.append(contentsOf: repeatElement(0, count: reserved.count)) }
      },
      read: { (reader: inout FieldReader) throws(WireError) in
        if let magic, try reader.bytes.integer(magic, as: UInt32.self) != Hello.magic {
          throw WireError(.notSluice, "the peer doesn't speak the Sluice protocol")
        }
        let value = try read(&reader)
        if let reserved { _ = try unsafe reader.bytes.bytes(reserved.what, count: reserved.count) }
        return value
      }, visitNames: visitNames)
  }

  /// The same field at the end of a structure, where earlier versions don't have it. One that is cut short is malformed.
  ///
  /// - Parameter value: the default if the structure ends before it.
  func added(absent value: Value) -> Field where Value: Sendable {
    Field(
      write: write,
      read: { (reader: inout FieldReader) throws(WireError) in
        reader.bytes.count == 0 ? value : try read(&reader)
      }, visitNames: visitNames)
  }

  /// The same field, whose value is judged.
  ///
  /// - Parameter problem: why a value is refused; nil for one that isn't.
  func refused(_ problem: @escaping @Sendable (Value) -> WireError?) -> Field {
    Field(
      write: write,
      read: { (reader: inout FieldReader) throws(WireError) in
        let value = try read(&reader)
        try reader.refuse(problem(value))
        return value
      }, visitNames: visitNames)
  }
}
