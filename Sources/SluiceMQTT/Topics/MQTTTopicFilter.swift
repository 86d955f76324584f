import SluiceWire

/// A topic filter: levels, of which `+` matches any one, and a final `#` for the parent and all levels below.
package struct MQTTTopicFilter: Hashable, Sendable, CustomStringConvertible {
  /// The group of a shared subscription, `$share/GROUP/FILTER`.
  package let group: String?
  /// Without the group.
  package let filter: String

  /// The filter as the client has sent it.
  package var description: String { group.map { "$share/\($0)/\(filter)" } ?? filter }

  /// - Throws: ``MQTTReason/topicFilterInvalid`` with a description of the error.
  package init(_ text: String) throws(MQTTError) {
    func invalid(_ why: String) -> MQTTError { MQTTError(.topicFilterInvalid, "the topic filter \(why)") }
    guard !text.isEmpty else { throw invalid("is empty") }
    guard text.utf8.starts(with: "$share/".utf8) || text == "$share" else {
      group = nil
      filter = text
      try Self.check(text)
      return
    }
    let rest = text.utf8.dropFirst(7)
    guard let end = rest.firstIndex(of: MQTTTopicName.slash) else {
      throw invalid("shares nothing: it must be $share/GROUP/FILTER")
    }
    guard let name = String(rest[..<end]), let shared = String(rest[rest.index(after: end)...]),
      !name.isEmpty, !name.utf8.contains(where: { "+#".utf8.contains($0) })
    else { throw invalid("has no valid group: one or more characters without +, # and /") }
    guard !shared.isEmpty else { throw invalid("of the group \(name) is empty") }
    group = name
    filter = shared
    try Self.check(shared)
  }

  private static func check(_ text: String) throws(MQTTError) {
    let levels = text.utf8.split(separator: MQTTTopicName.slash, omittingEmptySubsequences: false)
    for (index, level) in levels.enumerated() {
      if level.contains(UInt8(ascii: "#")), level.count > 1 || index < levels.count - 1 {
        throw MQTTError(.topicFilterInvalid, "the topic filter has # elsewhere than as its last level")
      }
      if level.contains(UInt8(ascii: "+")), level.count > 1 {
        throw MQTTError(.topicFilterInvalid, "the topic filter has + beside other characters in a level")
      }
    }
  }

  /// Whether it may match more than one topic.
  package var hasWildcards: Bool {
    filter.utf8.contains { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "#") }
  }

  /// Whether it matches a topic name of MQTT. Compares bytes: nothing is normalised.
  package func matches(_ name: String) -> Bool {
    if name.utf8.first == UInt8(ascii: "$"), beginsWithWildcard { return false }
    var levels = filter.utf8.split(separator: MQTTTopicName.slash, omittingEmptySubsequences: false)[...]
    var parts = name.utf8.split(separator: MQTTTopicName.slash, omittingEmptySubsequences: false)[...]
    while let level = levels.popFirst() {
      if level.elementsEqual("#".utf8) { return true }
      guard let part = parts.popFirst() else { return false }
      guard level.elementsEqual("+".utf8) || level.elementsEqual(part) else { return false }
    }
    return parts.isEmpty
  }

  /// Whether it begins with a wildcard, which matches no name that begins with `$` (MQTT 5, 4.7.2).
  private var beginsWithWildcard: Bool { filter.utf8.first.map { "+#".utf8.contains($0) } ?? false }

  /// Whether the filter matches a topic that its patterns match.
  package func isFor(broker name: String) -> Bool {
    guard beginsWithWildcard else { return true }
    let first = name.utf8.prefix { $0 != MQTTTopicName.dot }
    return MQTTLevel(isFirst: true).level(of: Substring(first)).utf8.first != UInt8(ascii: "$")
  }

  /// The broker's patterns that together match the same topics: two for `parent/#`, which also matches the parent. They may match topics that
  /// ``isFor(broker:)`` excludes.
  ///
  /// - Throws: ``MQTTReason/topicFilterInvalid`` for a pattern that would be too long.
  package func brokerPatterns() throws(MQTTError) -> [String] {
    var tokens: [String] = []
    var isOpen = false
    let levels = filter.utf8.split(separator: MQTTTopicName.slash, omittingEmptySubsequences: false)
    for (index, level) in levels.enumerated() {
      switch Substring(level) {
      case "+": tokens.append("*")
      case "#": isOpen = true
      case let text: tokens.append(MQTTLevel(isFirst: index == 0).token(of: text))
      }
    }
    var patterns: [String] = []
    if !isOpen || !tokens.isEmpty { patterns.append(tokens.joined(separator: ".")) }
    if isOpen { patterns.append((tokens + [">"]).joined(separator: ".")) }
    do {
      for pattern in patterns { _ = try TopicPattern(pattern) }
    } catch {
      throw MQTTError(
        .topicFilterInvalid, "the topic filter can't be a pattern of the broker: \(error.message)")
    }
    return patterns
  }
}
