/// Which of a topic's records a subscriber wants, by key and headers. All of its conditions must hold.
///
/// ```
/// structure (list of (u8 subject · u8 test · string header · u16 length · bytes value))
/// ```
///
/// Bytes are compared as they are. If a record has a header several times, one match is enough.
public struct RecordFilter: Hashable, Sendable {
  /// The subject of a condition.
  public enum Subject: Hashable, Sendable {
    /// 0: the record's key.
    case key
    /// 1: the header of that name.
    case header(String)
  }

  /// The test of a condition. The number is the one on the wire.
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
    writer.structure { $0.list(conditions) { $0.encode(into: &$1) } }
  }

  init(from reader: inout ByteReader) throws(WireError) {
    // All are read before one is judged, so that a filter that is cut short is malformed whatever it asks for.
    var refusal: WireError?
    var count = 0
    var filter = try reader.structure("filter")
    let conditions = try filter.list("filter condition") { reader throws(WireError) -> Condition? in
      count += 1
      do throws(WireError) {
        let condition = try Condition(from: &reader)
        // Beyond the limit nothing is kept.
        return count <= Self.maximumConditions ? condition : nil
      } catch {
        if error.code == .malformedFrame { throw error }
        refusal = refusal ?? WireError(error.code, "condition \(count) of the filter \(error.message)")
        return nil
      }
    }
    if count > Self.maximumConditions {
      refusal = WireError(
        .limitReached, "the filter has \(count) conditions; the limit is \(Self.maximumConditions)")
    }
    if let refusal { throw refusal }
    self.conditions = conditions.compactMap { $0 }
  }
}

extension RecordFilter.Condition {
  /// Appends the fields: u8 subject · u8 test · string header · u16 length · bytes value.
  public func encode(into writer: inout ByteWriter) {
    writer.integer(UInt8(subject == .key ? 0 : 1))
    writer.integer(test.kind.rawValue)
    writer.string(subject.name)
    let value = test.value
    writer.integer(UInt16(clamping: value.count))
    writer.bytes += value.prefix(Int(UInt16.max))
  }

  /// Reads the fields.
  ///
  /// - Throws: ``ErrorCode/malformedFrame`` when they are cut short; ``ErrorCode/limitReached`` and ``ErrorCode/unsupported`` when they are
  ///   complete and can't be accepted, with a message that continues "the condition".
  public init(from reader: inout ByteReader) throws(WireError) {
    let subject: UInt8 = try reader.integer("filter subject")
    let test: UInt8 = try reader.integer("filter test")
    let header = try reader.string("filter header")
    let length: UInt16 = try reader.integer("filter value")
    let value = try unsafe reader.bytes("filter value", count: Int(length))
    let longest = max(value.count, header.utf8.count)
    guard longest <= RecordFilter.maximumLength else {
      throw WireError(
        .limitReached, "has a text of \(longest) bytes; the limit is \(RecordFilter.maximumLength)")
    }
    switch subject {
    case 0: self.subject = .key
    case 1: self.subject = .header(header)
    default: throw WireError(.unsupported, "is about \(subject); 0, the key, and 1, a header, are defined")
    }
    switch test {
    case 0: self.test = .exists
    case 1: unsafe self.test = .equals(Array(value))
    case 2: unsafe self.test = .hasPrefix(Array(value))
    default:
      throw WireError(.unsupported, "is test \(test); 0, existence, 1, equality, and 2, prefix, are defined")
    }
  }
}

extension Field where Value == RecordFilter {
  static func filter(_ get: @escaping @Sendable (Owner) -> Value) -> Field {
    Field(
      write: { get($0).encode(into: &$1) },
      read: { (reader: inout FieldReader) throws(WireError) in try RecordFilter(from: &reader.bytes) })
  }
}
