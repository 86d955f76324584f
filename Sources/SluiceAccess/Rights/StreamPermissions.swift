import SluiceIO
import SluiceWire

/// The current permissions of a stream's client. For a layer of the same process that acts for the client, and needs information that the protocol
/// doesn't contain.
package protocol StreamPermissions: AnyObject {
  /// Whether all of `rights` may be done with the topic of that name, whether there is one or not.
  func allow(_ rights: Rights, on topic: String) -> Bool

  /// Whether a subscription to a pattern includes the topic of that name.
  func matchesTopics(named topic: String) -> Bool

  /// Whether a subscription to one of the patterns could ever include a topic. A client that is refused because it couldn't is reported and counted.
  func requireReach(of patterns: [TopicPattern]) -> Bool

  /// Makes a link by which its holder may do one thing with one topic, as the client may do then.
  ///
  /// - Parameter expires: in milliseconds since 1970.
  /// - Returns: its text, and when it expires.
  func makeLink(
    _ operation: LinkOperation, on topic: String, until expires: Int64
  ) throws(WireError) -> (text: String, expires: Int64)
}

/// A stream that gets its client's permissions, once they are known. It keeps them until it is closed, and no longer.
package protocol PermissionAwareStream: ByteStream {
  func learn(_ permissions: any StreamPermissions)
}
