/// REDIRECT: the broker's answer to a frame that opens a subscription to one topic, or a publication, in a cluster whose other node serves that topic: the
/// client is to open the stream there. It ends the stream.
///
/// ```
/// string node · string address
/// ```
///
/// Only to a client that has agreed to ``Feature/redirects``, and never to a frame with ``StreamFlag/relay``.
public struct Redirect: LaidOutFrame {
  public static let type = FrameType.redirect

  /// The node's name in its cluster.
  public var node: String
  /// Where clients reach it, as `HOST:PORT`; with the same security as the broker that sends this.
  public var address: String

  public init(node: String, address: String) {
    self.node = node
    self.address = address
  }

  public static let layout = FrameLayout(
    Self.init, Field.string("REDIRECT node", limit: Limits.name, \Self.node),
    Field.string("REDIRECT address", limit: Limits.address, \Self.address))
}

/// The bits of ``Hello/features`` and ``Welcome/features``.
public enum Feature {
  /// The client takes ``Redirect``. A broker that is a node of a cluster grants it.
  public static let redirects: UInt64 = 1 << 0
}

/// The bits of ``FrameHeader/flags`` that have a meaning. They are among the high four, so that a receiver that doesn't know them ignores them.
public enum StreamFlag {
  /// On SUBSCRIBE, JOIN and PUBLISH_OPEN: the broker serves the stream itself, by way of the topic's node, rather than answering with ``Redirect``.
  public static let relay: UInt8 = 0x10
  /// On PUBLISH: the producer doesn't wait for this batch, so its acknowledgement may come with that of a later one.
  public static let unhurried: UInt8 = 0x20
}
