import SluiceWire

/// Topic names: levels between slashes, and the broker's names with tokens between dots.
///
/// | MQTT | broker |
/// |---|---|
/// | `a/b/c` | `a.b.c` |
/// | `a.b/c`, `a/`, `/a`, `a//b`, `a b`, `a/*`, `a/>` | can't be expressed, and is refused |
/// | `$…` | reserved, and refused |
/// | can't be expressed | `a/b.c`, `a+.b`, `a#.b`: a token with a slash or a wildcard |
package enum MQTTTopicName {
  /// The broker's name for a topic name of MQTT.
  ///
  /// - Throws: ``MQTTReason/topicNameInvalid`` with what can't be expressed.
  package static func brokerName(_ name: String) throws(MQTTError) -> String {
    guard !name.utf8.contains(UInt8(ascii: ".")) else {
      throw MQTTError(
        .topicNameInvalid,
        "the topic name has a dot, which separates tokens in the broker's names; use levels: a/b instead of a.b"
      )
    }
    let translated = String(decoding: name.utf8.map { $0 == slash ? dot : $0 }, as: UTF8.self)
    do {
      try TopicName.validate(translated)
    } catch {
      throw MQTTError(.topicNameInvalid, error.message)
    }
    return translated
  }

  /// The topic name of MQTT for a name of the broker; nil where there is none.
  package static func name(ofBroker name: String) -> String? {
    let reserved = [slash, UInt8(ascii: "+"), UInt8(ascii: "#"), 0]
    guard !name.isEmpty, !name.utf8.contains(where: reserved.contains) else { return nil }
    return String(decoding: name.utf8.map { $0 == dot ? slash : $0 }, as: UTF8.self)
  }

  static let slash = UInt8(ascii: "/")
  static let dot = UInt8(ascii: ".")
}
