/// ORIGIN: the client for which a node opens the stream of this number with the next frame on it, or the new client of an open stream. Between nodes of a
/// cluster, for operators.
///
/// ```
/// string node · u64 connection · string client
/// ```
///
/// A broker that doesn't know it skips it, and one that does skips it from a peer that isn't a node.
public struct Origin: LaidOutFrame {
  public static let type = FrameType.origin

  /// The node to which the client is connected.
  public var node: String
  /// That node's number for the connection.
  public var connection: UInt64
  /// The name in the client's HELLO.
  public var client: String

  public init(node: String, connection: UInt64, client: String) {
    self.node = node
    self.connection = connection
    self.client = client
  }

  public static let layout = FrameLayout(
    Self.init, Field.string("ORIGIN node", limit: Limits.name, \Self.node),
    Field.integer("ORIGIN connection", \Self.connection),
    Field.string("ORIGIN client", limit: Limits.name, \Self.client))

  /// About the bytes of memory that it takes.
  package var bytes: Int { 96 + node.utf8.count + client.utf8.count }
}
