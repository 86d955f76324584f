/// The kind of a frame, from the low four bits of its first byte (RFC 6455, section 5.2).
package enum WebSocketOpcode: UInt8, Hashable, Sendable, CaseIterable {
  case continuation = 0x0
  case text = 0x1
  case binary = 0x2
  case close = 0x8
  case ping = 0x9
  case pong = 0xA

  /// Whether it is of a control frame, which is never fragmented and has at most ``largestControlPayload`` bytes.
  package var isControl: Bool { rawValue & 0x8 != 0 }

  /// In bytes.
  package static let largestControlPayload = 125
}

/// The end of a connection that a decoder or a session belongs to. A client masks its frames; a server doesn't.
package enum WebSocketSide: Hashable, Sendable {
  case server
  case client
}
