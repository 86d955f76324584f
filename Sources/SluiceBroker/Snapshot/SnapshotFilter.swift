import SluiceTopics

/// A text that selects connections, durable cursors and groups that contain it, ignoring case. An empty one selects everything.
public struct SnapshotFilter: Hashable, Sendable {
  private let part: String

  public init(_ part: String) {
    self.part = part.lowercased()
  }

  public var isEmpty: Bool { part.isEmpty }

  /// Returns whether the text contains it.
  func selects(_ text: String) -> Bool {
    part.isEmpty || text.lowercased().contains(part)
  }

  /// Returns whether the client's name, its identity, its address, its number or one of its topics contains it.
  func selects(_ connection: ConnectionSnapshot) -> Bool {
    selects(connection.client) || selects(connection.identity) || selects(connection.peer)
      || selects(String(connection.id)) || connection.topics.contains(where: selects)
  }
}
