/// Collects the bytes of a request's head, up to the empty line, from parts of any length.
package struct HTTPHeadReader: Sendable {
  /// The longest head in bytes, with the empty line.
  private let limit: Int
  private var bytes: [UInt8] = []
  /// Whether the request's method is complete. Only text may follow it.
  private var hasMethod = false
  /// Whether an empty line before the request was skipped; one is allowed (RFC 9112, 2.2).
  private var hasSkippedLine = false

  package init(limit: Int = 8192) {
    self.limit = limit
  }

  /// The bytes of memory in use.
  package var heldBytes: Int { bytes.capacity }

  /// Whether the request is HEAD; nil until its method is known.
  var isOfHEAD: Bool? {
    let beginning = Array("HEAD ".utf8)
    guard zip(bytes, beginning).allSatisfy({ $0 == $1 }) else { return false }
    return bytes.count >= beginning.count ? true : nil
  }

  /// Reads the next bytes.
  ///
  /// - Returns: the head, and the number of bytes of `chunk` that belong to it; nil until it is complete.
  /// - Throws: the reason why the head is invalid. The reader can't be used after that.
  package mutating func take(
    _ chunk: UnsafeRawBufferPointer
  ) throws(HTTPRequestHead.Fault) -> (head: HTTPRequestHead, taken: Int)? {
    for index in 0..<chunk.count {
      let byte = unsafe chunk[index]
      bytes.append(byte)
      guard bytes.count <= limit else {
        throw .tooLarge("the request's head has more than \(limit) bytes")
      }
      // Rejected at once: a client of another protocol may wait for an answer without sending a line end.
      if !hasMethod {
        guard byte >= 0x20 || byte == UInt8(ascii: "\r") || byte == UInt8(ascii: "\n") else {
          throw .malformed("these bytes aren't HTTP; is the client's address that of another protocol?")
        }
        hasMethod = byte == UInt8(ascii: " ")
      }
      guard byte == UInt8(ascii: "\n"), bytes.count >= 2 else { continue }
      guard bytes[bytes.count - 2] == UInt8(ascii: "\r") else {
        throw .malformed("a line doesn't end with CR LF")
      }
      if bytes.count == 2, !hasSkippedLine {
        (hasSkippedLine, bytes) = (true, [])
        continue
      }
      if bytes.count >= 4, bytes[bytes.count - 3] == UInt8(ascii: "\n") {
        let head = try HTTPRequestHead(bytes.dropLast(2))
        (hasMethod, hasSkippedLine, bytes) = (false, false, [])
        return (head, index + 1)
      }
    }
    return nil
  }
}
