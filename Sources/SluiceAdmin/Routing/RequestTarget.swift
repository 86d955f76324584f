/// The target of a request, taken apart: `/api/topics/a%2Eb?count=20`.
struct RequestTarget: Hashable {
  /// What stands between the slashes of the path, decoded; none of `/`.
  private(set) var path: [String] = []
  private(set) var query: [String: String] = [:]

  /// - Throws: 400 for what isn't a path, and for escapes that aren't UTF-8.
  init(_ text: String) throws(AdminProblem) {
    guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw .badRequest("the target has characters that must be escaped")
    }
    guard text.hasPrefix("/") else { throw .badRequest("the target isn't a path; it begins with /") }
    let parts = text.dropFirst().split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    if !parts[0].isEmpty {
      for part in parts[0].split(separator: "/", omittingEmptySubsequences: false) {
        path.append(try Self.decoded(part))
      }
    }
    guard parts.count > 1 else { return }
    for part in parts[1].split(separator: "&") {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = try Self.decoded(pair[0])
      let value = pair.count > 1 ? try Self.decoded(pair[1]) : ""
      guard query.updateValue(value, forKey: name) == nil else {
        throw .badRequest("the parameter '\(name)' is there twice")
      }
    }
  }

  private static func decoded(_ text: Substring) throws(AdminProblem) -> String {
    var bytes: [UInt8] = []
    var rest = text.utf8
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
        throw .badRequest("a % isn't followed by two hexadecimal digits")
      }
      bytes.append(high << 4 | low)
    }
    guard let decoded = String(validating: bytes, as: UTF8.self) else {
      throw .badRequest("what is escaped isn't UTF-8")
    }
    return decoded
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) }
  }
}
