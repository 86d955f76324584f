import SluiceWire

/// The clients that read a ``Mirror``. Operators at the topic's node see one of them as the subscriber. A value type.
struct MirrorNames {
  private var clients: [UInt64: (name: String, readers: Int)] = [:]
  /// The connection whose client is shown: the oldest with readers.
  private var named: UInt64?

  mutating func add(_ client: Origin) {
    clients[client.connection, default: (client.client, 0)].readers += 1
    named = min(named ?? client.connection, client.connection)
  }

  mutating func remove(_ client: Origin) {
    let connection = client.connection
    clients[connection]?.readers -= 1
    guard clients[connection]?.readers == 0 else { return }
    clients[connection] = nil
    if named == connection { named = clients.keys.min() }
  }

  /// Returns the shown client, and the number of the others in its name; nil when there are no clients.
  func origin(of node: String) -> Origin? {
    guard let named, let client = clients[named] else { return nil }
    let others = clients.count - 1
    let suffix = others == 0 ? "" : others == 1 ? " and 1 other" : " and \(others) others"
    let isFitting = client.name.utf8.count + suffix.utf8.count <= Int(Limits.name)
    return Origin(
      node: node, connection: named, client: isFitting ? client.name + suffix : client.name)
  }
}
