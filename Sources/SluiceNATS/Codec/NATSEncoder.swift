/// Appends the client's messages to a growing buffer.
///
/// The caller must check subjects before: see ``NATSSubject``.
enum NATSEncoder {
  static func connect(_ options: [UInt8], into bytes: inout [UInt8]) {
    append("CONNECT ", to: &bytes)
    bytes.append(contentsOf: options)
    end(&bytes)
  }

  static func ping(into bytes: inout [UInt8]) { append("PING\r\n", to: &bytes) }

  static func pong(into bytes: inout [UInt8]) { append("PONG\r\n", to: &bytes) }

  static func subscribe(_ subject: String, queue: String?, number: UInt64, into bytes: inout [UInt8]) {
    append("SUB ", to: &bytes)
    bytes.append(contentsOf: subject.utf8)
    bytes.append(0x20)
    if let queue {
      bytes.append(contentsOf: queue.utf8)
      bytes.append(0x20)
    }
    append(number, to: &bytes)
    end(&bytes)
  }

  /// - Parameter count: the total number of messages after which the server ends the subscription; nil to end it at once.
  static func unsubscribe(_ number: UInt64, after count: UInt64?, into bytes: inout [UInt8]) {
    append("UNSUB ", to: &bytes)
    append(number, to: &bytes)
    if let count {
      bytes.append(0x20)
      append(count, to: &bytes)
    }
    end(&bytes)
  }

  /// Appends everything of a message before its payload. The payload must follow, and then ``end(_:)``.
  ///
  /// - Parameters:
  ///   - reply: the subject for an answer, as bytes, so that those of requests needn't be converted to text; empty for none.
  ///   - count: the number of bytes of the payload.
  ///   - copied: the number of those bytes that are appended next.
  static func publish(
    _ subject: String, reply: some Collection<UInt8>, headers: NATSHeaders, payload count: Int, copied: Int,
    into bytes: inout [UInt8]
  ) {
    let headerCount = headers.encodedCount
    bytes.reserveCapacity(bytes.count + headerCount + copied + subject.utf8.count + 96)
    append(headerCount > 0 ? "HPUB " : "PUB ", to: &bytes)
    bytes.append(contentsOf: subject.utf8)
    bytes.append(0x20)
    if !reply.isEmpty {
      bytes.append(contentsOf: reply)
      bytes.append(0x20)
    }
    if headerCount > 0 {
      append(UInt64(headerCount), to: &bytes)
      bytes.append(0x20)
    }
    append(UInt64(headerCount + count), to: &bytes)
    end(&bytes)
    if headerCount > 0 {
      bytes.append(contentsOf: headers.bytes)
      end(&bytes)
    }
  }

  static func end(_ bytes: inout [UInt8]) {
    bytes.append(0x0D)
    bytes.append(0x0A)
  }

  private static func append(_ text: StaticString, to bytes: inout [UInt8]) {
    text.withUTF8Buffer { unsafe bytes.append(contentsOf: $0) }
  }

  /// Appends a decimal number.
  static func append(_ number: UInt64, to bytes: inout [UInt8]) {
    var divisor: UInt64 = 1
    while number / divisor >= 10 { divisor *= 10 }
    while divisor > 0 {
      bytes.append(UInt8(truncatingIfNeeded: number / divisor % 10) + 0x30)
      divisor /= 10
    }
  }
}
