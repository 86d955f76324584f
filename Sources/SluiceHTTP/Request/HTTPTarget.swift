/// The target of a request, decoded: `/api/topics/a%2Eb?count=20`.
package struct HTTPTarget: Hashable, Sendable {
  package struct Parameter: Hashable, Sendable {
    package var name: String
    package var value: String
  }

  /// The components of the path, decoded: one empty component for `/`.
  package let path: [String]
  package let query: [Parameter]

  /// - Throws: ``HTTPProblem`` for a malformed path, and for escapes that aren't UTF-8.
  package init(_ text: Substring) throws(HTTPProblem) {
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts[0].hasPrefix("/") else { throw HTTPProblem(400, "the target must begin with /") }
    var path: [String] = []
    for part in parts[0].dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
      path.append(try Self.decoded(part))
    }
    self.path = path
    var query: [Parameter] = []
    for item in (parts.count > 1 ? parts[1] : "").split(separator: "&") {
      let pair = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      query.append(
        Parameter(name: try Self.decoded(pair[0]), value: pair.count > 1 ? try Self.decoded(pair[1]) : ""))
    }
    self.query = query
  }

  /// Text in a path: everything but letters, digits and `-._~` as `%41`.
  package static func encoded(_ text: String) -> String {
    func digit(_ value: UInt8) -> String { String(value, radix: 16, uppercase: true) }
    return text.utf8.map { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: String(UnicodeScalar(byte))
      default: "%\(digit(byte >> 4))\(digit(byte & 15))"
      }
    }.joined()
  }

  /// Text with `%41` for a byte.
  private static func decoded(_ text: Substring) throws(HTTPProblem) -> String {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      let digits = rest.prefix(2)
      guard digits.count == 2, let number = HexDigits.number(digits) else {
        throw HTTPProblem(400, "the target has a % without two hexadecimal digits")
      }
      rest = rest.dropFirst(2)
      bytes.append(UInt8(number))
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw HTTPProblem(400, "the target isn't UTF-8")
    }
    return text
  }
}
