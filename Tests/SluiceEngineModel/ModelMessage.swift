import Glibc

/// A message in a server of the model.
public struct ModelMessage: Hashable, Sendable {
  public struct Field: Hashable, Sendable {
    public var name: String
    public var value: String
  }

  public var subject: String
  /// The subject for replies; empty if there is none.
  public var reply = ""
  /// The text after the version in the first line, such as `503`; empty without a status.
  public var status = ""
  public var headers: [Field] = []
  public var payload: [UInt8] = []

  init(
    _ subject: String, reply: String = "", status: String = "", headers: [(String, String)] = [],
    payload: [UInt8] = []
  ) {
    self.subject = subject
    self.reply = reply
    self.status = status
    self.headers = headers.map { Field(name: $0.0, value: $0.1) }
    self.payload = payload
  }

  /// The value of the first header with this name; nil if there is none.
  public subscript(name: String) -> String? {
    for field in headers where field.name == name { return field.value }
    return nil
  }

  func number(_ name: String) -> UInt64? { self[name].flatMap { UInt64($0) } }

  /// Parses the headers from a block, without the empty line at its end.
  mutating func setHeaders(_ block: UnsafeRawBufferPointer) {
    var isFirst = true
    var start = 0
    while start < block.count {
      let end = block.position(of: 0x0A, from: start) ?? block.count
      defer {
        start = end + 1
        isFirst = false
      }
      guard !isFirst else {
        status = block.text(start + "NATS/1.0".utf8.count, end)
        continue
      }
      guard let colon = block.position(of: UInt8(ascii: ":"), from: start), colon < end else { continue }
      headers.append(Field(name: block.text(start, colon), value: block.text(colon + 1, end)))
    }
  }

  /// The encoded headers; empty if there are none.
  var block: [UInt8] {
    guard !status.isEmpty || !headers.isEmpty else { return [] }
    var text = status.isEmpty ? "NATS/1.0\r\n" : "NATS/1.0 \(status)\r\n"
    for field in headers { text += "\(field.name): \(field.value)\r\n" }
    return Array((text + "\r\n").utf8)
  }
}

extension UnsafeRawBufferPointer {
  /// The next position of a byte; nil if there is none.
  func position(of byte: UInt8, from start: Int) -> Int? {
    guard start < count, let found = memchr(baseAddress! + start, Int32(byte), count - start) else {
      return nil
    }
    return UnsafeRawPointer(found) - baseAddress!
  }

  /// The text between two positions, without blanks and line breaks at its ends.
  func text(_ start: Int, _ end: Int) -> String {
    var (start, end) = (start, end)
    while start < end, self[start] <= 0x20 { start += 1 }
    while start < end, self[end - 1] <= 0x20 { end -= 1 }
    return start < end ? String(decoding: self[start..<end], as: UTF8.self) : ""
  }
}
