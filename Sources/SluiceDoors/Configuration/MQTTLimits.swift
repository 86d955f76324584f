import SluiceMQTT

/// Limits on MQTT clients. CONNACK reports them to clients of MQTT 5 as far as the protocol has a property for them.
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

  /// The most bytes that a packet has besides the payload and the properties of its record: the topic's name, and lengths.
  public static let packetOverhead = 64 << 10

  /// The longest keep-alive time; 0 for no limit, which also permits none at all. A client of MQTT 5 with a longer time, or none, gets this one as Server
  /// Keep Alive, in whole seconds. MQTT 3.1.1 has no such property, so its clients keep their own time.
  public var keepAlive = Duration.seconds(3600)
  /// The longest session expiry interval, in whole seconds; 0 for no limit, which also permits sessions that never expire.
  public var sessionExpiry = Duration.zero
  /// Messages at QoS 1 and 2 that a client may have in flight to the broker.
  public var receiveMaximum = 1024
  /// The longest packet of a client, in bytes: a record of 1 MiB plus the overhead. CONNECT, which the client sends before it knows this limit, may have 128
  /// KiB.
  public var packet = (1 << 20) + packetOverhead
  /// Topic aliases that a client may set.
  public var topicAliases = 32
  /// Subscriptions of a client at the same time.
  public var subscriptions = 10_000
  /// Sessions that outlive their connections, at the same time.
  public var sessions = 1_000_000
  /// The memory of these sessions, in bytes: their encoded values, their names, and 200 bytes each. Beyond it, a client is refused a further session or
  /// further subscriptions in a session.
  public var sessionBytes = 1 << 30
  /// The memory of wills whose delay hasn't passed, in bytes. Beyond it, a will is published as soon as its client has disconnected.
  public var willBytes = 256 << 20

  /// A connection is packed once it has had no turn for this time and nothing is in flight. A connection that was packed before stays unpacked for much
  /// longer, so that a client with frequent messages isn't packed after each.
  package var quietAfter = Duration.milliseconds(10)

  /// The bytes that a session takes besides its value and name: its entry in the broker's table.
  static let sessionOverhead = 200

  public init() {}

  /// The rules that all sessions share.
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
