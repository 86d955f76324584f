/// Appends what the client sends to a growing buffer.
///
/// Subjects must be checked before: see ``NATSSubject``.
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

  /// - Parameter count: the server ends the subscription after so many messages in total; at once when nil.
  static func unsubscribe(_ number: UInt64, after count: UInt64?, into bytes: inout [UInt8]) {
    append("UNSUB ", to: &bytes)
    append(number, to: &bytes)
    if let count {
      bytes.append(0x20)
      append(count, to: &bytes)
    }
    end(&bytes)
  }

  /// Everything of a message that is ahead of its payload, which follows, and then ``end(_:)``.
  ///
  /// - Parameters:
  ///   - reply: the subject that an answer goes to, as bytes, so that those of requests needn't be made into text; empty for none.
  ///   - count: the payload's bytes.
  ///   - copied: those of them that are about to be appended.
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
