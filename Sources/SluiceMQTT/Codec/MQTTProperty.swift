/// A property of MQTT 5 (section 2.2.2.2). The number is its identifier on the wire.
package enum MQTTProperty: UInt8, Hashable, Sendable, CaseIterable {
  case payloadFormat = 0x01
  case messageExpiry = 0x02
  case contentType = 0x03
  case responseTopic = 0x08
  case correlationData = 0x09
  case subscriptionIdentifier = 0x0B
  case sessionExpiry = 0x11
  case assignedClientIdentifier = 0x12
  case serverKeepAlive = 0x13
  case authenticationMethod = 0x15
  case authenticationData = 0x16
  case requestProblemInformation = 0x17
  case willDelay = 0x18
  case requestResponseInformation = 0x19
  case responseInformation = 0x1A
  case serverReference = 0x1C
  case reasonString = 0x1F
  case receiveMaximum = 0x21
  case topicAliasMaximum = 0x22
  case topicAlias = 0x23
  case maximumQoS = 0x24
  case retainAvailable = 0x25
  case userProperty = 0x26
  case maximumPacketSize = 0x27
  case wildcardSubscriptionAvailable = 0x28
  case subscriptionIdentifierAvailable = 0x29
  case sharedSubscriptionAvailable = 0x2A

  enum Kind {
    /// 0 or 1.
    case flag
    case short
    case long
    case variable
    case string
    case binary
    case pair
  }

  var kind: Kind {
    switch self {
    case .payloadFormat, .requestProblemInformation, .requestResponseInformation, .maximumQoS,
      .retainAvailable, .wildcardSubscriptionAvailable, .subscriptionIdentifierAvailable,
      .sharedSubscriptionAvailable:
      .flag
    case .serverKeepAlive, .receiveMaximum, .topicAliasMaximum, .topicAlias: .short
    case .messageExpiry, .sessionExpiry, .willDelay, .maximumPacketSize: .long
    case .subscriptionIdentifier: .variable
    case .contentType, .responseTopic, .assignedClientIdentifier, .authenticationMethod,
      .responseInformation, .serverReference, .reasonString:
      .string
    case .correlationData, .authenticationData: .binary
    case .userProperty: .pair
    }
  }

  /// Whether 0 is an invalid value.
  var isNeverZero: Bool {
    switch self {
    case .receiveMaximum, .maximumPacketSize, .topicAlias, .subscriptionIdentifier: true
    default: false
    }
  }

  /// The packets in which it is allowed.
  var places: MQTTPropertyPlaces {
    switch self {
    case .payloadFormat, .messageExpiry, .contentType, .responseTopic, .correlationData: [.publish, .will]
    case .subscriptionIdentifier: [.publish, .subscribe]
    case .sessionExpiry: [.connect, .connack, .disconnect]
    case .assignedClientIdentifier, .serverKeepAlive, .responseInformation, .maximumQoS, .retainAvailable,
      .wildcardSubscriptionAvailable, .subscriptionIdentifierAvailable, .sharedSubscriptionAvailable:
      .connack
    case .authenticationMethod, .authenticationData: [.connect, .connack, .auth]
    case .requestProblemInformation, .requestResponseInformation: .connect
    case .willDelay: .will
    case .serverReference: [.connack, .disconnect]
    case .reasonString: [.connack, .acknowledgement, .suback, .unsuback, .disconnect, .auth]
    case .receiveMaximum, .topicAliasMaximum, .maximumPacketSize: [.connect, .connack]
    case .topicAlias: .publish
    case .userProperty: .all
    }
  }

  /// Whether it may occur there more than once.
  func repeats(in place: MQTTPropertyPlaces) -> Bool {
    self == .userProperty || self == .subscriptionIdentifier && place == .publish
  }
}

/// Packets, and the will in CONNECT, in which properties are allowed.
struct MQTTPropertyPlaces: OptionSet, Sendable {
  var rawValue: UInt16

  static let connect = Self(rawValue: 1 << 0)
  static let connack = Self(rawValue: 1 << 1)
  static let publish = Self(rawValue: 1 << 2)
  static let will = Self(rawValue: 1 << 3)
  /// PUBACK, PUBREC, PUBREL, PUBCOMP.
  static let acknowledgement = Self(rawValue: 1 << 4)
  static let subscribe = Self(rawValue: 1 << 5)
  static let suback = Self(rawValue: 1 << 6)
  static let unsubscribe = Self(rawValue: 1 << 7)
  static let unsuback = Self(rawValue: 1 << 8)
  static let disconnect = Self(rawValue: 1 << 9)
  static let auth = Self(rawValue: 1 << 10)
  static let all = Self(rawValue: .max)
}
