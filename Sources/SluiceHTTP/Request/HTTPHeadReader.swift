/// Gathers the bytes of a request's head, up to the empty line, wherever the transport cut them.
package struct HTTPHeadReader: Sendable {
  /// In bytes, with the empty line.
  private let limit: Int
  private var bytes: [UInt8] = []
  /// Whether the request's method has come, behind which there may be text.
  private var hasMethod = false
  /// Whether an empty line in front of the request was passed over: one is (RFC 9112, 2.2).
  private var hasSkippedLine = false

  package init(limit: Int = 8192) {
    self.limit = limit
  }

  /// Bytes of memory that are held.
  package var heldBytes: Int { bytes.capacity }

  /// Whether the bytes are those of HEAD, as far as they have come: nil while that can't be told.
  var isOfHEAD: Bool? {
    let beginning = Array("HEAD ".utf8)
    guard zip(bytes, beginning).allSatisfy({ $0 == $1 }) else { return false }
    return bytes.count >= beginning.count ? true : nil
  }

  /// Takes the next bytes.
  ///
  /// - Returns: the head, and how many bytes of `chunk` it took; nil while it isn't complete.
  /// - Throws: why it is no head. The reader isn't usable after that.
  package mutating func take(
    _ chunk: UnsafeRawBufferPointer
  ) throws(HTTPRequestHead.Fault) -> (head: HTTPRequestHead, taken: Int)? {
    for index in 0..<chunk.count {
      let byte = unsafe chunk[index]
      bytes.append(byte)
      guard bytes.count <= limit else {
        throw .tooLarge("the request's head has more than \(limit) bytes")
      }
      // Answered at once: a client of another protocol waits for an answer, and sends no line.
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
