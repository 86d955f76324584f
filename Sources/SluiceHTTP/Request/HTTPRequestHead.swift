/// The head of an HTTP/1 request: its request line and its fields (RFC 9112).
package struct HTTPRequestHead: Hashable, Sendable {
  package struct Field: Hashable, Sendable {
    /// The name as it was sent.
    package var name: String
    /// The value without surrounding white space.
    package var value: String
  }

  package var method: String
  package var target: String
  /// The digits after `HTTP/`.
  package var version: String
  package var fields: [Field]

  /// The reason why a head is invalid.
  package enum Fault: Error, Hashable, Sendable {
    case malformed(String)
    /// It contains bytes that aren't UTF-8. Different values would look the same as text.
    case notText
    /// It has more bytes, or more fields, than the limit.
    case tooLarge(String)
  }

  /// The most fields of a request.
  package static let maximumFields = 100

  /// Returns the values of all fields with that name, ignoring case.
  package func values(_ name: String) -> [String] {
    fields.filter { $0.name.lowercased() == name }.map(\.value)
  }

  /// Returns the elements of comma-separated lists in all fields with that name, without white space around them.
  package func elements(_ name: String) -> [String] {
    values(name).flatMap { $0.split(separator: ",").map { Self.trimmed($0) } }.filter { !$0.isEmpty }
  }

  /// Whether the client uses the older version, in which an answer of unknown length ends with the connection.
  package var isOfHTTP10: Bool { version == "1.0" }

  /// A later minor version is read as 1.1 (RFC 9110, 2.5).
  var isOfKnownVersion: Bool {
    version.utf8.count == 3 && version.hasPrefix("1.") && version.last?.isWholeNumber ?? false
  }

  /// - Parameter bytes: the bytes before the empty line.
  init(_ bytes: ArraySlice<UInt8>) throws(Fault) {
    var lines: [Substring] = []
    // RFC 9110 leaves the meaning of bytes beyond ASCII to the server, in values only. The rules below work on bytes.
    guard let whole = String(validating: bytes, as: UTF8.self) else { throw .notText }
    var text = whole[...]
    while let end = text.utf8.firstIndex(of: UInt8(ascii: "\n")) {
      var line = text[..<end]
      guard line.utf8.last == UInt8(ascii: "\r") else { throw .malformed("a line doesn't end with CR LF") }
      line = Substring(line.utf8.dropLast())
      lines.append(line)
      text = Substring(text.utf8[text.utf8.index(after: end)...])
    }
    guard let first = lines.first else { throw .malformed("there is no request line") }
    let parts = first.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 3, Self.isToken(parts[0]), parts[2].hasPrefix("HTTP/"),
      !parts[1].isEmpty, parts[1].utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else { throw .malformed("the request line isn't METHOD TARGET HTTP/VERSION") }
    method = String(parts[0])
    target = String(parts[1])
    version = String(parts[2].dropFirst(5))
    fields = []
    guard lines.count - 1 <= Self.maximumFields else {
      throw .tooLarge("the request has more than \(Self.maximumFields) fields")
    }
    for line in lines.dropFirst() {
      guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else {
        throw .malformed("a field has no colon")
      }
      let name = line[..<colon]
      guard Self.isToken(name) else { throw .malformed("a field's name isn't a token") }
      let value = Self.trimmed(line[line.utf8.index(after: colon)...])
      guard value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
        throw .malformed("the field \(name) has a control character")
      }
      fields.append(Field(name: String(name), value: value))
    }
  }

  /// A token of RFC 9110, 5.6.2.
  package static func isToken(_ text: Substring) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"):
          true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
      }
  }

  private static func trimmed(_ text: Substring) -> String {
    let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
    var bytes = text.utf8.drop(while: isSpace)
    while let last = bytes.last, isSpace(last) { bytes = bytes.dropLast() }
    return String(Substring(bytes))
  }
}
