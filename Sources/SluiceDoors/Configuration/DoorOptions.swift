/// What holds for all doors.
public struct DoorOptions: Hashable, Sendable {
  /// Origins whose pages may connect, such as `https://example.org`. Without one only programs may: a browser names the origin of the page
  /// with each connection, a program doesn't.
  public var origins: Set<String> = []
  /// Whether pages of every origin may connect.
  public var allowsAnyOrigin = false

  /// Whether messages of WebSockets are compressed for clients that offer to do so, by permessage-deflate.
  public var compressesWebSockets = false

  /// After how long without a record an answer of server-sent events gets a comment, so that a connection whose client has vanished ends; 0 for never.
  public var keepalive = Duration.seconds(15)

  /// Whether the broker has a store of its own, so that sessions of MQTT outlive its process: in the durable topic `mqtt.sessions`, to which nothing else
  /// writes.
  public var keepsSessions = false

  /// Limits on what clients of MQTT may ask for.
  public var mqtt = MQTTLimits()

  public init() {}

  /// Origins whose pages may connect; nil for all.
  var permittedOrigins: Set<String>? { allowsAnyOrigin ? nil : origins }
}
