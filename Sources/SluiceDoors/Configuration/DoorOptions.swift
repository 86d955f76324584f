import SluiceHTTP

/// Options that apply to all gateways.
public struct DoorOptions: Hashable, Sendable {
  /// Origins whose pages may connect, such as `https://example.org`. If empty, only programs may connect: a browser sends the page's origin with each
  /// connection, a program doesn't.
  public var origins: Set<String> = []
  /// Whether pages of every origin may connect.
  public var allowsAnyOrigin = false

  /// Whether browsers may send a page's requests with cookies and other credentials of their own, and let the page read the answers.
  public var allowsCredentials = false
  /// Names of fields that pages may send in requests besides those that the gateway knows.
  public var requestFields: [String] = []

  /// How long a signed link is valid by default, and at most.
  public var linkTime = Duration.seconds(60)
  public var longestLinkTime = Duration.seconds(3600)

  /// Whether WebSocket messages are compressed by permessage-deflate for clients that offer it.
  public var compressesWebSockets = false

  /// The time without a record after which an answer of server-sent events gets a comment, so that the connection of a vanished client ends; 0 for never.
  public var keepalive = Duration.seconds(15)

  /// Whether the broker has durable storage, so that MQTT sessions outlive its process: they are in the durable topic `mqtt.sessions`, to which only the
  /// gateway writes.
  public var keepsSessions = false

  /// Limits on MQTT clients.
  public var mqtt = MQTTLimits()

  public init() {}

  /// Returns whether a text can be the name of an HTTP field.
  public static func isFieldName(_ text: String) -> Bool { HTTPRequestHead.isToken(text[...]) }

  /// Origins whose pages may connect; nil for all.
  var permittedOrigins: Set<String>? { allowsAnyOrigin ? nil : origins }
}
