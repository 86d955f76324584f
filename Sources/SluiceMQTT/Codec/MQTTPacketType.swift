/// A version of the protocol. The number is the level in CONNECT.
package enum MQTTVersion: UInt8, Hashable, Sendable, CaseIterable {
  case v311 = 4
  case v5 = 5
}

/// The type of a control packet: the high four bits of its first byte.
package enum MQTTPacketType: UInt8, Hashable, Sendable, CaseIterable {
  case connect = 1
  case connack = 2
  case publish = 3
  case puback = 4
  case pubrec = 5
  case pubrel = 6
  case pubcomp = 7
  case subscribe = 8
  case suback = 9
  case unsubscribe = 10
  case unsuback = 11
  case pingreq = 12
  case pingresp = 13
  case disconnect = 14
  /// MQTT 5 only.
  case auth = 15

  /// The required low four bits of its first byte; nil if they are flags.
  package var flags: UInt8? {
    switch self {
    case .publish: nil
    case .pubrel, .subscribe, .unsubscribe: 2
    default: 0
    }
  }
}

/// The end of a connection that sends a packet.
package enum MQTTSender: Hashable, Sendable {
  case client
  case server

  /// Whether it may send packets of that type.
  package func sends(_ type: MQTTPacketType, _ version: MQTTVersion) -> Bool {
    switch type {
    case .connect, .subscribe, .unsubscribe, .pingreq: self == .client
    case .connack, .suback, .unsuback, .pingresp: self == .server
    case .publish, .puback, .pubrec, .pubrel, .pubcomp: true
    case .disconnect: self == .client || version == .v5
    case .auth: version == .v5
    }
  }
}

/// The quality of service with which a message is delivered.
package enum MQTTQoS: UInt8, Hashable, Sendable, Comparable, CaseIterable {
  case atMostOnce = 0
  case atLeastOnce = 1
  case exactlyOnce = 2

  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
