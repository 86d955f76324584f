import SluiceMQTT

/// Limits on what clients of MQTT may ask for. Clients of MQTT 5 are told of them in CONNACK, as far as the protocol has a property for them.
public struct MQTTLimits: Hashable, Sendable {
  /// The values of ``keepAlive``.
  public static let keepAlives: ClosedRange<Duration> = .zero ... .seconds(Int64(UInt16.max))
  /// The values of ``sessionExpiry``.
  public static let sessionExpiries: ClosedRange<Duration> = .zero ... .seconds(Int64(UInt32.max - 1))
  /// The values of ``receiveMaximum`` and ``subscriptions``.
  public static let counts: ClosedRange<UInt64> = 1...UInt64(UInt16.max)
  /// The values of ``topicAliases``.
  public static let aliases: ClosedRange<UInt64> = 0...UInt64(UInt16.max)
  /// The values of ``packet``.
  public static let packets: ClosedRange<Int> = 16...268_435_460
  /// The values of ``sessions``.
  public static let sessionCounts: ClosedRange<UInt64> = 0...100_000_000
  /// The values of ``sessionBytes``.
  public static let sessionSizes: ClosedRange<Int> = 64 << 10...1 << 40

  /// What a packet has at most besides the payload and the properties, which are its record's: the topic's name, and lengths.
  public static let packetOverhead = 64 << 10

  /// The longest keep alive time; 0 for any, none among them. A client of MQTT 5 with a longer one or none gets this one as Server Keep Alive, in whole
  /// seconds. One of MQTT 3.1.1 can't be told, and keeps its own.
  public var keepAlive = Duration.seconds(3600)
  /// The longest session expiry interval, in whole seconds; 0 for any, without an end among them.
  public var sessionExpiry = Duration.zero
  /// Messages at QoS 1 and 2 that a client may have under way to the broker.
  public var receiveMaximum = 1024
  /// The longest packet of a client, in bytes: a record of 1 MiB, and what a packet has besides. CONNECT, which comes before the client knows it, may have 128 KiB.
  public var packet = (1 << 20) + packetOverhead
  /// Topic aliases that a client may set.
  public var topicAliases = 32
  /// Subscriptions of a client at a time.
  public var subscriptions = 10_000
  /// Sessions that are kept beyond their connections, at a time.
  public var sessions = 1_000_000
  /// The memory that they take, in bytes: of their encoded values, their names, and 200 bytes each. A client that wants one more, or one with more
  /// subscriptions, is refused beyond it.
  public var sessionBytes = 1 << 30
  /// The memory of wills whose delay isn't over, in bytes. Beyond it a will is published as soon as its client is gone.
  public var willBytes = 256 << 20

  /// A connection that has no turn for so long is packed, if nothing is under way. One that was packed before stays as it is for much longer, so that a
  /// client that sends or gets messages often isn't packed for each.
  package var quietAfter = Duration.milliseconds(10)

  /// What a session takes beside its bytes: its place in the broker's table.
  static let sessionOverhead = 200

  public init() {}

  /// What every session has in common.
  var rules: MQTTSessionRules {
    var rules = MQTTSessionRules()
    rules.maximumKeepAlive = UInt16(clamping: keepAlive.components.seconds)
    let expiry = sessionExpiry.components.seconds
    rules.maximumSessionExpiry = expiry == 0 ? .max : UInt32(clamping: expiry)
    rules.receiveMaximum = UInt16(clamping: receiveMaximum)
    rules.maximumPacket = UInt32(clamping: packet)
    rules.topicAliasMaximum = UInt16(clamping: topicAliases)
    rules.maximumSubscriptions = subscriptions
    return rules
  }
}
