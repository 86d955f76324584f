import SluiceTopics

/// A part of a text by which connections, durable cursors and groups are looked for, whatever its case. An empty one selects everything.
public struct SnapshotFilter: Hashable, Sendable {
  private let part: String

  public init(_ part: String) {
    self.part = part.lowercased()
  }

  public var isEmpty: Bool { part.isEmpty }

  /// Whether the text has it.
  func selects(_ text: String) -> Bool {
    part.isEmpty || text.lowercased().contains(part)
  }

  /// Whether the client's name, its identity, its address, its number or one of its topics has it.
  func selects(_ connection: ConnectionSnapshot) -> Bool {
    selects(connection.client) || selects(connection.identity) || selects(connection.peer)
      || selects(String(connection.id)) || connection.topics.contains(where: selects)
  }
}
