/// The chunks of an answer whose length isn't known when it begins (RFC 9112, 7.1).
package enum HTTPChunk {
  /// The last chunk, which ends the answer.
  static let last: [UInt8] = Array("0\r\n\r\n".utf8)

  /// Returns a framed chunk; nothing for an empty one, which would end the answer.
  package static func framed(_ bytes: [UInt8]) -> [UInt8] {
    guard !bytes.isEmpty else { return [] }
    let head = head(bytes.count)
    var framed: [UInt8] = []
    framed.reserveCapacity(head.count + bytes.count + lineEnd.count)
    framed += head
    framed += bytes
    framed += lineEnd
    return framed
  }

  /// Returns the bytes that were passed to ``framed(_:)``.
  static func content(of framed: [UInt8]) -> ArraySlice<UInt8> {
    framed.drop { $0 != 0x0A }.dropFirst().dropLast(lineEnd.count)
  }

  /// Returns the line before a chunk of that size.
  fileprivate static func head(_ count: Int) -> [UInt8] { Array("\(String(count, radix: 16))\r\n".utf8) }

  fileprivate static let lineEnd: [UInt8] = [0x0D, 0x0A]
}

extension HTTPOutput {
  /// Appends a chunk; nothing for an empty one.
  mutating func append(chunk bytes: [UInt8]) {
    guard !bytes.isEmpty else { return }
    append(HTTPChunk.head(bytes.count))
    append(bytes)
    append(HTTPChunk.lineEnd)
  }

  /// Appends the head of an answer.
  mutating func append(head status: Int, _ fields: [(String, String)]) {
    append(HTTPAnswerHead.bytes(status, fields))
  }
}
