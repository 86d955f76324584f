import SluiceIO
import SluiceWire

/// What the client of a stream may do, as it is at each moment. For a layer of the same process that speaks for the client, which can't ask by the
/// protocol what the protocol doesn't tell.
package protocol StreamPermissions: AnyObject {
  /// Whether all of `rights` may be done with the topic of that name, whether there is one or not.
  func allow(_ rights: Rights, on topic: String) -> Bool

  /// Whether a subscription to a pattern includes the topic of that name.
  func matchesTopics(named topic: String) -> Bool

  /// Whether a subscription to one of the patterns could ever include a topic. A client that is refused because it couldn't is reported and counted.
  func requireReach(of patterns: [TopicPattern]) -> Bool
}

/// A stream that is told of its client's permissions, once they are known. It keeps what it is told no longer than until it is closed.
package protocol PermissionAwareStream: ByteStream {
  func learn(_ permissions: any StreamPermissions)
}
