import TestSupport

/// A minimal client of MQTT 5 that sends and receives packets.
final class RawMQTT {
  let socket: RawSocket
  private var unread: [UInt8] = []

  init(_ address: String) throws { socket = try RawSocket(address) }

  /// - Parameters:
  ///   - will: its topic, its payload, and its delay in seconds; nil for none.
  ///   - expiry: the session expiry interval in seconds.
  ///   - isClean: whether the client starts a new session.
  static func connect(
    _ name: String, will: (topic: String, payload: [UInt8], delay: UInt32)? = nil, expiry: UInt32 = 0,
    isClean: Bool = true
  ) -> [UInt8] {
    var body =
      text("MQTT") + [5, (isClean ? 2 : 0) | (will == nil ? 0 : 0x0C), 0, 0, 5, 0x11] + number(expiry)
      + text(name)
    if let will {
      body += [5, 0x18] + number(will.delay) + text(will.topic)
      body += number(UInt16(will.payload.count)) + will.payload
    }
    return packet(0x10, body)
  }

  static func subscribe(_ packetID: UInt16, _ filters: [String], qos: UInt8 = 1) -> [UInt8] {
    packet(0x82, number(packetID) + [0] + filters.flatMap { text($0) + [qos] })
  }

  /// PUBLISH at QoS 1.
  static func publish(_ packetID: UInt16, _ topic: String, _ payload: [UInt8]) -> [UInt8] {
    packet(0x32, text(topic) + number(packetID) + [0] + payload)
  }

  /// PUBACK for a PUBLISH, given the bytes after its length.
  static func acknowledge(_ publish: [UInt8]) -> [UInt8] {
    let place = 2 + (Int(publish[0]) << 8 | Int(publish[1]))
    return packet(0x40, Array(publish[place..<place + 2]))
  }

  static func packet(_ type: UInt8, _ body: [UInt8]) -> [UInt8] {
    var (head, length) = ([type], body.count)
    repeat {
      head.append(UInt8(length % 128) | (length >= 128 ? 128 : 0))
      length /= 128
    } while length > 0
    return head + body
  }

  private static func text(_ text: String) -> [UInt8] { number(UInt16(text.utf8.count)) + Array(text.utf8) }

  private static func number(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { Array($0) }
  }

  func send(_ bytes: [UInt8]) throws {
    let deadline = Deadline(in: Deadline.patience)
    var sent = 0
    while sent < bytes.count {
      sent += try bytes[sent...].withUnsafeBytes { try socket.write($0) }
      if sent < bytes.count { try require(socket.wait(toWrite: true, until: deadline), "there is no room") }
    }
  }

  /// The next packet: its first byte, and the bytes after its length.
  func receive() throws -> (type: UInt8, body: [UInt8]) {
    let deadline = Deadline(in: Deadline.patience)
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      if let packet = takePacket() { return packet }
      if let count = try chunk.withUnsafeMutableBytes({ try socket.read(into: $0) }) {
        unread += chunk[..<count]
      } else {
        try require(socket.wait(until: deadline), "no packet comes")
      }
    }
  }

  private func takePacket() -> (type: UInt8, body: [UInt8])? {
    var (length, place) = (0, 1)
    while place < unread.count {
      length |= Int(unread[place] & 127) << (7 * (place - 1))
      place += 1
      guard unread[place - 1] < 128 else { continue }
      guard unread.count >= place + length else { return nil }
      defer { unread.removeFirst(place + length) }
      return (unread[0], Array(unread[place..<place + length]))
    }
    return nil
  }
}
