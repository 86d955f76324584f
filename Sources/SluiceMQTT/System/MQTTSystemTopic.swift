import SluiceWire

/// The topics below `$SYS`, to which the broker alone publishes. Bridges publish their state to `$SYS/broker/connection/…`, which clients may do.
package enum MQTTSystemTopic {
  /// The prefix of the names of the broker's own values.
  package static let root = "$SYS/broker/"

  private static let tree = "$SYS"
  private static let bridges = "connection/"

  /// Whether a topic name of MQTT is one that no client may publish to.
  package static func isReserved(_ name: String) -> Bool {
    guard name.utf8.starts(with: tree.utf8) else { return false }
    let rest = name.utf8.dropFirst(tree.utf8.count)
    guard rest.isEmpty || rest.first == MQTTTopicName.slash else { return false }
    return !name.utf8.starts(with: (root + bridges).utf8)
  }

  /// Whether a name of the broker is that of such a topic.
  package static func isReserved(broker name: String) -> Bool {
    name.utf8.first == UInt8(ascii: "%") && isReserved(MQTTTopicName.name(ofBroker: name))
  }

  /// The broker's name for a topic that a client publishes to.
  ///
  /// - Throws: ``MQTTReason/topicNameInvalid`` for a reserved name and for one that the broker can't have.
  static func publishedName(_ name: String) throws(MQTTError) -> String {
    guard !isReserved(name) else {
      throw MQTTError(
        .topicNameInvalid,
        "clients can't publish to $SYS, but for the state of bridges below \(root + bridges); choose another topic"
      )
    }
    return try MQTTTopicName.brokerName(name)
  }
}

extension MQTTTopicFilter {
  /// Whether it may match values of the broker: only a filter that begins with `$SYS` does.
  package var selectsSystemTopics: Bool { group == nil && filter.utf8.starts(with: "$SYS/".utf8) }
}
