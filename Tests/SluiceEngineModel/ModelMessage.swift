/// A message as a server of the model has it.
public struct ModelMessage: Hashable, Sendable {
  public struct Field: Hashable, Sendable {
    public var name: String
    public var value: String
  }

  public var subject: String
  /// Where an answer goes; empty for nowhere.
  public var reply = ""
  /// What stands behind the version in the first line, such as `503`; empty without a status.
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

  /// The value of the first header of this name; nil for none.
  public subscript(name: String) -> String? { headers.first { $0.name == name }?.value }

  func number(_ name: String) -> UInt64? { self[name].flatMap { UInt64($0) } }

  /// Takes the headers from a block; without an empty line at its end, as it is sent.
  mutating func setHeaders(_ block: [UInt8]) {
    var lines = block.split(separator: 0x0A, omittingEmptySubsequences: true)[...]
    if let first = lines.popFirst() {
      status = String(decoding: first.dropFirst("NATS/1.0".utf8.count), as: UTF8.self).trimmed
    }
    for line in lines {
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
      headers.append(
        Field(
          name: String(decoding: line[..<colon], as: UTF8.self).trimmed,
          value: String(decoding: line[(colon + 1)...], as: UTF8.self).trimmed))
    }
  }

  /// The headers as they are sent; empty without any.
  var block: [UInt8] {
    guard !status.isEmpty || !headers.isEmpty else { return [] }
    var text = status.isEmpty ? "NATS/1.0\r\n" : "NATS/1.0 \(status)\r\n"
    for field in headers { text += "\(field.name): \(field.value)\r\n" }
    return Array((text + "\r\n").utf8)
  }
}

extension String {
  /// Without blanks and line ends at either end.
  var trimmed: String {
    var bytes = utf8[...]
    while let first = bytes.first, first <= 0x20 { bytes = bytes.dropFirst() }
    while let last = bytes.last, last <= 0x20 { bytes = bytes.dropLast() }
    return String(Substring(bytes))
  }
}
