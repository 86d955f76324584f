/// Why an endpoint closes a connection (RFC 6455, section 7.4).
package struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  package var rawValue: UInt16

  package init(rawValue: UInt16) {
    self.rawValue = rawValue
  }

  package static let normal = Self(rawValue: 1000)
  /// The endpoint goes away: the server stops.
  package static let goingAway = Self(rawValue: 1001)
  package static let protocolError = Self(rawValue: 1002)
  /// A kind of message that the endpoint doesn't take, such as text where the subprotocol is binary.
  package static let unsupportedData = Self(rawValue: 1003)
  /// Never on the wire: a Close frame had no code.
  package static let noStatus = Self(rawValue: 1005)
  /// Never on the wire: the connection was lost without a Close frame.
  package static let abnormal = Self(rawValue: 1006)
  /// Text that isn't UTF-8.
  package static let invalidPayload = Self(rawValue: 1007)
  package static let policyViolation = Self(rawValue: 1008)
  package static let messageTooBig = Self(rawValue: 1009)
  package static let internalError = Self(rawValue: 1011)
  package static let serviceRestart = Self(rawValue: 1012)
  package static let tryAgainLater = Self(rawValue: 1013)

  /// Whether a Close frame may carry it.
  ///
  /// | codes | |
  /// |---|---|
  /// | 0–999 | not used |
  /// | 1000–1003, 1007–1014 | defined by the RFC and the IANA registry |
  /// | 1004, 1005, 1006, 1015 | reserved; not on the wire |
  /// | 1016–2999 | not defined yet |
  /// | 3000–3999 | registered by libraries and applications |
  /// | 4000–4999 | private |
  /// | 5000– | not defined |
  package var isAllowedOnWire: Bool {
    switch rawValue {
    case 1000...1003, 1007...1014, 3000...4999: true
    default: false
    }
  }

  package var description: String { "\(rawValue)" }
}

/// A violation of the protocol: the code to close with, and a sentence that says what the peer did.
package struct WebSocketError: Error, Hashable, Sendable, CustomStringConvertible {
  package var code: WebSocketCloseCode
  package var message: String

  package init(_ code: WebSocketCloseCode, _ message: String) {
    self.code = code
    self.message = message
  }

  package var description: String { "\(message) (\(code))" }
}
