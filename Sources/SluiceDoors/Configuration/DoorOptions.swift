import SluiceHTTP

/// What holds for all doors.
public struct DoorOptions: Hashable, Sendable {
  /// Origins whose pages may connect, such as `https://example.org`. Without one only programs may: a browser names the origin of the page
  /// with each connection, a program doesn't.
  public var origins: Set<String> = []
  /// Whether pages of every origin may connect.
  public var allowsAnyOrigin = false

  /// Whether browsers may send a page's requests with cookies and other credentials of their own, and show it the answers.
  public var allowsCredentials = false
  /// Names of fields that pages may send in requests beside those that the door knows.
  public var requestFields: [String] = []

  /// For how long a signed link is valid that states no time, and for how long at most.
  public var linkTime = Duration.seconds(60)
  public var longestLinkTime = Duration.seconds(3600)

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

  /// Whether a text can be the name of a field of HTTP.
  public static func isFieldName(_ text: String) -> Bool { HTTPRequestHead.isToken(text[...]) }

  /// Origins whose pages may connect; nil for all.
  var permittedOrigins: Set<String>? { allowsAnyOrigin ? nil : origins }
}
