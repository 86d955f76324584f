/// A reason code (MQTT 5, section 2.4). Codes from ``unspecified`` on are failures.
package struct MQTTReason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  package var rawValue: UInt8

  package init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  init(_ rawValue: UInt8) { self.rawValue = rawValue }

  /// Also a normal disconnection, and granted QoS 0.
  package static let success = Self(0x00)
  package static let grantedQoS1 = Self(0x01)
  package static let grantedQoS2 = Self(0x02)
  package static let disconnectWithWill = Self(0x04)
  package static let noMatchingSubscribers = Self(0x10)
  package static let noSubscriptionExisted = Self(0x11)
  package static let continueAuthentication = Self(0x18)
  package static let reauthenticate = Self(0x19)
  package static let unspecified = Self(0x80)
  package static let malformedPacket = Self(0x81)
  package static let protocolError = Self(0x82)
  package static let implementationSpecific = Self(0x83)
  package static let unsupportedVersion = Self(0x84)
  package static let clientIdentifierNotValid = Self(0x85)
  package static let badCredentials = Self(0x86)
  package static let notAuthorized = Self(0x87)
  package static let serverUnavailable = Self(0x88)
  package static let serverBusy = Self(0x89)
  package static let banned = Self(0x8A)
  package static let serverShuttingDown = Self(0x8B)
  package static let badAuthenticationMethod = Self(0x8C)
  package static let keepAliveTimeout = Self(0x8D)
  package static let sessionTakenOver = Self(0x8E)
  package static let topicFilterInvalid = Self(0x8F)
  package static let topicNameInvalid = Self(0x90)
  package static let packetIdentifierInUse = Self(0x91)
  package static let packetIdentifierNotFound = Self(0x92)
  package static let receiveMaximumExceeded = Self(0x93)
  package static let topicAliasInvalid = Self(0x94)
  package static let packetTooLarge = Self(0x95)
  package static let messageRateTooHigh = Self(0x96)
  package static let quotaExceeded = Self(0x97)
  package static let administrativeAction = Self(0x98)
  package static let payloadFormatInvalid = Self(0x99)
  package static let retainNotSupported = Self(0x9A)
  package static let qosNotSupported = Self(0x9B)
  package static let useAnotherServer = Self(0x9C)
  package static let serverMoved = Self(0x9D)
  package static let sharedSubscriptionsNotSupported = Self(0x9E)
  package static let connectionRateExceeded = Self(0x9F)
  package static let maximumConnectTime = Self(0xA0)
  package static let subscriptionIdentifiersNotSupported = Self(0xA1)
  package static let wildcardSubscriptionsNotSupported = Self(0xA2)

  package var isFailure: Bool { rawValue >= 0x80 }

  package var description: String { "0x" + (rawValue < 16 ? "0" : "") + String(rawValue, radix: 16) }

  /// Whether a packet of that type, from that end, may contain it.
  package func isAllowed(in type: MQTTPacketType, from sender: MQTTSender) -> Bool {
    switch type {
    case .connack: Self.connack.contains(rawValue)
    case .puback, .pubrec: Self.received.contains(rawValue)
    case .pubrel, .pubcomp: rawValue == 0 || rawValue == 0x92
    case .suback: Self.suback.contains(rawValue)
    case .unsuback: Self.unsuback.contains(rawValue)
    case .disconnect: (sender == .client ? Self.clientDisconnect : Self.serverDisconnect).contains(rawValue)
    case .auth:
      rawValue == 0x18 || (rawValue == 0x19) == (sender == .client) && [0x00, 0x19].contains(rawValue)
    default: false
    }
  }

  private static let connack: Set<UInt8> = [
    0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95, 0x97, 0x99,
    0x9A,
    0x9B, 0x9C, 0x9D, 0x9F,
  ]
  private static let received: Set<UInt8> = [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]
  private static let suback: Set<UInt8> = [
    0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2,
  ]
  private static let unsuback: Set<UInt8> = [0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91]
  private static let clientDisconnect: Set<UInt8> = [
    0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
  ]
  private static let serverDisconnect: Set<UInt8> = [
    0x00, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97,
    0x98,
    0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1, 0xA2,
  ]
}

/// An error in a packet: the reason for the peer, and a sentence that says what to do.
///
/// It ends the connection.
package struct MQTTError: Error, Hashable, Sendable, CustomStringConvertible {
  package var reason: MQTTReason
  package var message: String

  package init(_ reason: MQTTReason, _ message: String) {
    self.reason = reason
    self.message = message
  }

  static func malformed(_ message: String) -> MQTTError { MQTTError(.malformedPacket, message) }
  static func violation(_ message: String) -> MQTTError { MQTTError(.protocolError, message) }

  package var description: String { "\(message) (\(reason))" }
}
