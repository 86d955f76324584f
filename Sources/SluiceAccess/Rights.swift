/// What an identity may do with a topic.
public struct Rights: OptionSet, Hashable, Sendable {
  public var rawValue: UInt8

  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// Open publications, and with them end the topic.
  public static let publish = Rights(rawValue: 1)
  /// Subscribe, join groups, look at cursors.
  public static let subscribe = Rights(rawValue: 2)
  /// Make the topic, by the first use or with settings.
  public static let create = Rights(rawValue: 4)
  /// Delete the topic, connect and disconnect it, move and delete its cursors and groups.
  public static let admin = Rights(rawValue: 8)

  public static let all: Rights = [.publish, .subscribe, .create, .admin]
}

extension Rights {
  /// The rights one by one, as they are written.
  public static let names: KeyValuePairs<Rights, String> = [
    .publish: "publish", .subscribe: "subscribe", .create: "create", .admin: "admin",
  ]
}
