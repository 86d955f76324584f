/// A ``RecordFilter`` made ready to look at many records, in place and without allocating.
///
/// The records must have been checked when they came in, by ``RecordLayout/validate(_:count:maximumRecord:)``: their lengths are believed. Takes one walk
/// over a record's attributes, however many conditions there are.
// @unchecked: constant from the end of `init` on.
@safe
public final class RecordMatcher: @unchecked Sendable {
  @safe
  private struct Condition {
    var test: RecordFilter.Test.Kind
    /// The name of a header; not used for the key.
    var name: UnsafeRawBufferPointer
    var value: UnsafeRawBufferPointer
  }

  private let conditions: UnsafeMutablePointer<Condition>
  /// Those about the key come first.
  private let keyConditions: Int
  private let count: Int
  /// All names and values.
  private let texts: UnsafeMutableRawPointer

  /// - Precondition: the filter has at most ``RecordFilter/maximumConditions``.
  public init(_ filter: RecordFilter) {
    let ordered =
      filter.conditions.filter { $0.subject == .key } + filter.conditions.filter { $0.subject != .key }
    precondition(ordered.count <= RecordFilter.maximumConditions, "a filter has too many conditions")
    count = ordered.count
    keyConditions = ordered.count { $0.subject == .key }
    unsafe conditions = .allocate(capacity: max(count, 1))
    let bytes = ordered.reduce(0) { $0 + $1.subject.name.utf8.count + $1.test.value.count }
    unsafe texts = .allocate(byteCount: max(bytes, 1), alignment: 1)
    var end = unsafe texts
    func keep(_ text: some Collection<UInt8>) -> UnsafeRawBufferPointer {
      let place = unsafe UnsafeMutableRawBufferPointer(start: end, count: text.count)
      unsafe place.copyBytes(from: text)
      unsafe end += text.count
      return UnsafeRawBufferPointer(place)
    }
    for (index, condition) in ordered.enumerated() {
      unsafe (conditions + index).initialize(
        to: Condition(
          test: condition.test.kind, name: keep(condition.subject.name.utf8),
          value: keep(condition.test.value)))
    }
  }

  /// Nil for a filter that lets every record through.
  public convenience init?(unlessEmpty filter: RecordFilter) {
    if filter.isEmpty { return nil }
    self.init(filter)
  }

  deinit {
    unsafe conditions.deallocate()
    unsafe texts.deallocate()
  }

  /// Whether a record of this kind, with the body at `body`, is wanted.
  @inlinable
  public func matches(_ kind: RecordLayout.Kind, _ body: UnsafeRawPointer) -> Bool {
    // Every condition needs a key or a header.
    unsafe kind == .attributed ? matches(attributed: body) : isEmpty
  }

  /// Whether a record is wanted, given with its word.
  public func matches(item: UnsafeRawBufferPointer) -> Bool {
    guard let base = item.baseAddress else { return isEmpty }
    return unsafe matches(RecordLayout.kind(RecordLayout.word(at: base)), base + RecordLayout.wordSize)
  }

  /// True when every record is wanted.
  public var isEmpty: Bool { count == 0 }

  @usableFromInline
  func matches(attributed body: UnsafeRawPointer) -> Bool {
    let flags = unsafe body.load(as: UInt8.self)
    var position = unsafe body + 1
    if flags & RecordAttributes.Flag.key != 0 {
      let key = unsafe Self.text(&position, length: UInt16.self)
      for index in 0..<keyConditions where unsafe !Self.holds(conditions[index], of: key) { return false }
    } else if keyConditions > 0 {
      return false
    }
    guard keyConditions < count else { return true }
    guard flags & RecordAttributes.Flag.headers != 0 else { return false }
    // A bit for each condition that no header has met yet.
    var open: UInt32 = (1 << UInt32(count)) &- (1 << UInt32(keyConditions))
    var headers = unsafe UInt16(littleEndian: position.loadUnaligned(as: UInt16.self))
    unsafe position += 2
    while headers > 0 {
      headers &-= 1
      let name = unsafe Self.text(&position, length: UInt16.self)
      let value = unsafe Self.text(&position, length: UInt32.self)
      var untried = open
      while untried != 0 {
        let index = untried.trailingZeroBitCount
        untried &= untried &- 1
        let condition = unsafe conditions[index]
        guard unsafe condition.name.count == name.count, unsafe Self.begins(name, with: condition.name),
          unsafe Self.holds(condition, of: value)
        else { continue }
        open &= ~(1 << UInt32(index))
        if open == 0 { return true }
      }
    }
    return false
  }

  /// A length and as many bytes; moves behind them.
  @inline(__always)
  private static func text<Length: FixedWidthInteger & BitwiseCopyable>(
    _ position: inout UnsafeRawPointer, length: Length.Type
  ) -> UnsafeRawBufferPointer {
    let count = unsafe Int(truncatingIfNeeded: Length(littleEndian: position.loadUnaligned(as: Length.self)))
    let start = unsafe position + MemoryLayout<Length>.size
    unsafe position = unsafe start + count
    return unsafe UnsafeRawBufferPointer(start: start, count: count)
  }

  @inline(__always)
  private static func holds(_ condition: Condition, of value: UnsafeRawBufferPointer) -> Bool {
    switch condition.test {
    case .exists: true
    case .equals: unsafe value.count == condition.value.count && begins(value, with: condition.value)
    case .hasPrefix: unsafe value.count >= condition.value.count && begins(value, with: condition.value)
    }
  }

  /// Whether `bytes`, which are as many at least, begin with `prefix`. Eight at a time: most texts are a few words long.
  @inline(__always)
  private static func begins(_ bytes: UnsafeRawBufferPointer, with prefix: UnsafeRawBufferPointer) -> Bool {
    guard let left = bytes.baseAddress, let right = prefix.baseAddress else { return true }
    var position = 0
    let end = prefix.count
    while end &- position >= 8 {
      guard
        unsafe left.loadUnaligned(fromByteOffset: position, as: UInt64.self)
          == right.loadUnaligned(fromByteOffset: position, as: UInt64.self)
      else { return false }
      position &+= 8
    }
    while position < end {
      guard
        unsafe left.load(fromByteOffset: position, as: UInt8.self)
          == right.load(fromByteOffset: position, as: UInt8.self)
      else { return false }
      position &+= 1
    }
    return true
  }
}

extension RecordFilter.Test {
  enum Kind: UInt8 {
    case exists, equals, hasPrefix
  }

  var kind: Kind {
    switch self {
    case .exists: .exists
    case .equals: .equals
    case .hasPrefix: .hasPrefix
    }
  }

  package var value: [UInt8] {
    switch self {
    case .exists: []
    case .equals(let value), .hasPrefix(let value): value
    }
  }
}

extension RecordFilter.Subject {
  /// Empty for the key.
  package var name: String {
    switch self {
    case .key: ""
    case .header(let name): name
    }
  }
}
