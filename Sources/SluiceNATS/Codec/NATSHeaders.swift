/// The headers of a message: lines of a name and a value after a first line that may contain a status.
///
/// ```text
/// NATS/1.0 204 EOB⏎
/// Nats-Num-Pending: 0⏎
/// Nats-Last-Sequence: 6⏎
/// ⏎
/// ```
///
/// Stored as they are sent, without the empty line at the end. Names are compared byte by byte, as the server does.
public struct NATSHeaders: Hashable, Sendable {
  /// The first line and one line for each header; empty without headers.
  private(set) var bytes: [UInt8] = []

  static let version = Array("NATS/1.0".utf8)
  static let firstLine = Array("NATS/1.0\r\n".utf8)

  /// No headers.
  public init() {}

  /// A copy of headers that have arrived.
  public init(_ headers: NATSHeadersView) {
    bytes = headers.block[0..<max(0, headers.block.count - 2)].array
  }

  /// A copy of a block with its empty line; no headers for an empty block.
  ///
  /// - Returns: nil for an invalid block.
  init?(block: [UInt8]) {
    guard !block.isEmpty else { return }
    var isValid = false
    unsafe block.withUnsafeBytes { unsafe isValid = NATSHeadersView.isValid(NATSBytes($0)) }
    guard isValid else { return nil }
    bytes = Array(block.dropLast(2))
  }

  /// All lines with the empty line, even without headers.
  var block: [UInt8] { (bytes.isEmpty ? Self.firstLine : bytes) + [0x0D, 0x0A] }

  public var isEmpty: Bool { bytes.isEmpty }

  /// The bytes on the wire, including the empty line; 0 without headers.
  public var encodedCount: Int { bytes.isEmpty ? 0 : bytes.count + 2 }

  /// Appends a header. A name may occur several times.
  ///
  /// - Throws: ``NATSError/Code-swift.struct/invalidHeader`` for a name that is empty or contains control characters, blanks or a colon, and for a value
  ///   with a line break.
  public mutating func add(_ name: String, _ value: String) throws(NATSError) {
    guard !name.isEmpty, name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }) else {
      throw NATSError(
        .invalidHeader,
        "'\(name)' can't be a header's name: use printable characters without blanks and colons")
    }
    guard !value.utf8.contains(where: { $0 == 0x0D || $0 == 0x0A }) else {
      throw NATSError(.invalidHeader, "the value of the header \(name) has a line break, which no header can")
    }
    append(name, value)
  }

  /// Appends a header whose name and value are known to be valid.
  mutating func append(_ name: StaticString, _ value: String) {
    begin(name.utf8CodeUnitCount + value.utf8.count)
    name.withUTF8Buffer { unsafe bytes.append(contentsOf: $0) }
    end(value)
  }

  mutating func append(_ name: StaticString, _ value: UInt64) {
    begin(name.utf8CodeUnitCount + 20)
    name.withUTF8Buffer { unsafe bytes.append(contentsOf: $0) }
    end(String(value))
  }

  private mutating func append(_ name: String, _ value: String) {
    begin(name.utf8.count + value.utf8.count)
    bytes.append(contentsOf: name.utf8)
    end(value)
  }

  private mutating func begin(_ count: Int) {
    if bytes.isEmpty {
      bytes.reserveCapacity(256)
      bytes.append(contentsOf: Self.firstLine)
    }
  }

  private mutating func end(_ value: String) {
    bytes.append(UInt8(ascii: ":"))
    bytes.append(UInt8(ascii: " "))
    bytes.append(contentsOf: value.utf8)
    bytes.append(0x0D)
    bytes.append(0x0A)
  }

  /// The value of the first header with this name; nil for none.
  public subscript(name: String) -> String? {
    unsafe bytes.withUnsafeBytes { unsafe NATSHeadersView(NATSBytes($0))[name]?.text }
  }

  /// The status in the first line, such as 503; nil without one.
  public var status: Int? {
    unsafe bytes.withUnsafeBytes { unsafe NATSHeadersView(NATSBytes($0)).status }
  }
}

/// Headers in the memory in which they arrived. Valid only during the call that passes them.
@safe
public struct NATSHeadersView {
  /// From `NATS/1.0` to the empty line.
  public let block: NATSBytes

  init(_ block: NATSBytes) {
    self.block = block
  }

  /// Returns whether a block can be headers: it must begin with the version and end with an empty line.
  static func isValid(_ block: NATSBytes) -> Bool {
    let count = block.count
    guard count >= NATSHeaders.firstLine.count + 2, block.hasPrefix(NATSHeaders.version) else { return false }
    let next = block[NATSHeaders.version.count]
    return (isBlank(next) || next == 0x0D)
      && (block[count - 4], block[count - 3], block[count - 2], block[count - 1]) == (0x0D, 0x0A, 0x0D, 0x0A)
  }

  /// The first line after the version: a status and its description.
  private var firstLine: NATSBytes {
    let end = block.firstIndex(of: 0x0D) ?? block.count
    return block[min(NATSHeaders.version.count, end)..<end].trimmed
  }

  /// The status in the first line, such as 503; nil without one.
  public var status: Int? {
    let line = firstLine
    return line[0..<(line.firstIndex(of: 0x20) ?? line.count)].number
  }

  /// The text after the status; empty without any.
  public var statusText: String {
    let line = firstLine
    guard status != nil, let blank = line.firstIndex(of: 0x20) else { return "" }
    return line.dropFirst(blank).trimmed.text
  }

  /// The value of the first header with this name, without surrounding blanks; nil for none.
  public subscript(name: String) -> NATSBytes? {
    var found: NATSBytes?
    visit { header, value in
      if header == name { found = value }
      return found == nil
    }
    return found
  }

  /// The value of the first header with this name as a number; nil for none, and for a value that isn't a number.
  public func number(_ name: String) -> UInt64? { self[name]?.number.map { UInt64($0) } }

  /// Calls `body` with each header in order until it returns false. Lines without a colon are skipped.
  public func visit(_ body: (_ name: NATSBytes, _ value: NATSBytes) -> Bool) {
    guard var start = block.firstIndex(of: 0x0A).map({ $0 + 1 }) else { return }
    while start < block.count {
      let end = block.firstIndex(of: 0x0A, from: start) ?? block.count
      var line = block[start..<end]
      start = end + 1
      if line.count > 0, line[line.count - 1] == 0x0D { line = line[0..<line.count - 1] }
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
      guard body(line[0..<colon].trimmed, line.dropFirst(colon + 1).trimmed) else { return }
    }
  }
}
