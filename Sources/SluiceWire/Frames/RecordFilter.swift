/// Which of a topic's records a subscriber wants, by key and headers. All of its conditions must hold.
///
/// ```
/// u8 count · count × (u8 subject · u8 test · string header · u16 length · bytes value)
/// ```
///
/// Bytes are compared as they are. Of a header that a record has several times, one that fits is enough.
public struct RecordFilter: Hashable, Sendable {
  /// What a condition looks at.
  public enum Subject: Hashable, Sendable {
    /// 0: the record's key.
    case key
    /// 1: the header of that name.
    case header(String)
  }

  /// What must be so. The number is the one on the wire.
  public enum Test: Hashable, Sendable {
    /// 0: there is one, empty or not.
    case exists
    /// 1: it has this value.
    case equals([UInt8])
    /// 2: it begins with this.
    case hasPrefix([UInt8])
  }

  public struct Condition: Hashable, Sendable {
    public var subject: Subject
    public var test: Test

    public init(_ subject: Subject, _ test: Test) {
      self.subject = subject
      self.test = test
    }
  }

  /// Without any, every record is wanted.
  public var conditions: [Condition]

  /// The most conditions that a filter may have.
  public static let maximumConditions = 16
  /// The most bytes that a value, or a header's name, may have.
  public static let maximumLength = 1024

  public init(_ conditions: [Condition] = []) {
    self.conditions = conditions
  }

  public var isEmpty: Bool { conditions.isEmpty }
}

extension RecordFilter {
  func encode(into writer: inout ByteWriter) {
    writer.integer(UInt8(clamping: conditions.count))
    for condition in conditions {
      let (subject, header): (UInt8, String) =
        switch condition.subject {
        case .key: (0, "")
        case .header(let name): (1, name)
        }
      let (test, value): (UInt8, [UInt8]) =
        switch condition.test {
        case .exists: (0, [])
        case .equals(let value): (1, value)
        case .hasPrefix(let value): (2, value)
        }
      writer.integer(subject)
      writer.integer(test)
      writer.string(header)
      writer.integer(UInt16(clamping: value.count))
      unsafe value.withUnsafeBytes { unsafe writer.raw($0) }
    }
  }

  init(from reader: inout ByteReader) throws(WireError) {
    conditions = []
    let count: UInt8 = try reader.integer("filter count")
    // All are read before one is judged: what follows them has its place.
    var refusal: WireError?
    for index in 0..<Int(count) {
      let subject: UInt8 = try reader.integer("filter subject")
      let test: UInt8 = try reader.integer("filter test")
      let header = try reader.string("filter header")
      let length: UInt16 = try reader.integer("filter value")
      let value = try unsafe reader.bytes("filter value", count: Int(length))
      do {
        unsafe conditions.append(try Self.condition(subject, header, test, value))
      } catch {
        refusal = refusal ?? WireError(error.code, "condition \(index + 1) of the filter \(error.message)")
      }
    }
    if Int(count) > Self.maximumConditions {
      refusal = WireError(
        .limitReached, "the filter has \(count) conditions; the limit is \(Self.maximumConditions)")
    }
    if let refusal { throw refusal }
  }

  private static func condition(
    _ subject: UInt8, _ header: String, _ test: UInt8, _ value: UnsafeRawBufferPointer
  ) throws(WireError) -> Condition {
    guard max(value.count, header.utf8.count) <= maximumLength else {
      throw WireError(
        .limitReached,
        "has a text of \(max(value.count, header.utf8.count)) bytes; the limit is \(maximumLength)")
    }
    let what: Subject
    switch subject {
    case 0: what = .key
    case 1: what = .header(header)
    default: throw WireError(.unsupported, "is about \(subject); 0, the key, and 1, a header, are defined")
    }
    switch test {
    case 0: return Condition(what, .exists)
    case 1: return unsafe Condition(what, .equals(Array(value)))
    case 2: return unsafe Condition(what, .hasPrefix(Array(value)))
    default:
      throw WireError(.unsupported, "is test \(test); 0, existence, 1, equality, and 2, prefix, are defined")
    }
  }
}
