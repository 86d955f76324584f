import SluiceWire

/// Topic names: levels between slashes in MQTT, and tokens between dots in the broker. Every name of one side has an equivalent on the other: `a/b c` is
/// `a.b%20c`. ``MQTTLevel`` describes levels that one side doesn't allow. Only the broker's name `%00`, which would be an empty name, has no equivalent in
/// MQTT.
package enum MQTTTopicName {
  /// The broker's name for a topic name of MQTT.
  ///
  /// - Throws: ``MQTTReason/topicNameInvalid`` for an empty name, and if the broker's name would be too long.
  package static func brokerName(_ name: String) throws(MQTTError) -> String {
    guard !name.isEmpty else { throw MQTTError(.topicNameInvalid, "the topic name is empty") }
    let translated = name.utf8.split(separator: slash, omittingEmptySubsequences: false).enumerated()
      .map { MQTTLevel(isFirst: $0.offset == 0).token(of: Substring($0.element)) }
      .joined(separator: ".")
    do {
      try TopicName.validate(translated)
    } catch {
      throw MQTTError(.topicNameInvalid, error.message)
    }
    return translated
  }

  /// The MQTT topic name for a name of the broker; empty if there is none.
  package static func name(ofBroker name: String) -> String {
    name.utf8.split(separator: dot, omittingEmptySubsequences: false).enumerated()
      .map { MQTTLevel(isFirst: $0.offset == 0).level(of: Substring($0.element)) }
      .joined(separator: "/")
  }

  /// The MQTT topic name if it or the broker's name has escapes, so that they differ in more than the separators; nil otherwise.
  package static func escapedName(ofBroker name: String) -> String? {
    let foreign = self.name(ofBroker: name)
    return foreign.isEmpty
      || foreign == String(decoding: name.utf8.map { $0 == dot ? slash : $0 }, as: UTF8.self)
      ? nil : foreign
  }

  static let slash = UInt8(ascii: "/")
  static let dot = UInt8(ascii: ".")
}
