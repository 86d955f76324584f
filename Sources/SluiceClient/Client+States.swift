import SluiceWire

// The states of durable topics' producers and groups, for backups. They need the right to administer the topic.
extension Client {
  /// A page of a topic's states of one kind: see ``StateList``.
  ///
  /// - Parameter after: the last key of the previous page; empty for the first page.
  package func states(
    _ kind: StateEntry.Kind, of topic: String, after: [UInt8] = [],
    completion: @escaping Completion<TopicStates>
  ) {
    ask(StateList(topic: topic, kind: kind, after: after), completion)
  }

  /// Restores a topic's states: see ``StateRestore``.
  package func restoreStates(
    _ states: [StateEntry], _ kind: StateEntry.Kind, of topic: String, origin: UInt64,
    completion: @escaping Completion<Void>
  ) {
    ask(StateRestore(topic: topic, kind: kind, origin: origin, states: states), completion)
  }
}
