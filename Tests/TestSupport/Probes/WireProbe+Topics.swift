import SluiceWire

extension WireProbe {
  // MARK: Names

  /// Validates `bytes` as a topic's name.
  public static func topicName(_ bytes: [UInt8]) throws {
    let name = String(decoding: bytes, as: UTF8.self)
    do {
      try TopicName.validate(name)
    } catch {
      guard error.code == .invalidTopic, error.message.utf8.count < 1000 else {
        throw ProbeViolation("a topic name was refused with \(error)")
      }
      return
    }
    guard name.utf8.count <= TopicName.maximumLength, tokens(name).allSatisfy({ !$0.isEmpty }),
      name.utf8.first != UInt8(ascii: "$"), !name.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }),
      !name.utf8.contains(UInt8(ascii: "*")), !name.utf8.contains(UInt8(ascii: ">"))
    else { throw ProbeViolation("\(name) was taken for a topic name") }
  }

  private static func tokens(_ text: String) -> [String] {
    text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map { String($0) ?? "" }
  }

  // MARK: Patterns

  private static let mostLines = 24

  /// Parses each line as a pattern and as a name. Patterns, and an index of them, must match the same names as a comparison token by token.
  public static func patterns(_ bytes: [UInt8]) throws {
    let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: mostLines).prefix(mostLines)
      .map { String(decoding: $0, as: UTF8.self) }
    var patterns: [TopicPattern] = []
    for line in lines {
      do {
        patterns.append(try TopicPattern(line))
      } catch {
        guard error.code == .invalidTopic, error.message.utf8.count < 1000, isName(line) == false else {
          throw ProbeViolation("the pattern \(line) is refused with \(error)")
        }
        continue
      }
      let hasWildcards = tokens(line).contains { $0 == "*" || $0 == ">" }
      guard patterns.last?.description == line, patterns.last?.hasWildcards == hasWildcards,
        isName(line) != hasWildcards
      else { throw ProbeViolation("\(line) isn't read as the pattern that it is") }
    }
    var index = PatternIndex<Int>()
    for (number, pattern) in patterns.enumerated() { index.insert(pattern, number: UInt64(number), number) }
    for name in lines where isName(name) {
      let selecting = patterns.indices.filter { patterns[$0].selects(name) }
      for pattern in patterns { try check(pattern, name) }
      guard index.values(selecting: name) == selecting else {
        throw ProbeViolation("the index finds \(index.values(selecting: name)) for \(name) in \(patterns)")
      }
    }
    try takeOut(patterns, of: &index, names: lines.filter(isName))
  }

  private static func takeOut(
    _ patterns: [TopicPattern], of index: inout PatternIndex<Int>, names: [String]
  ) throws {
    var left = Array(patterns.indices)
    for number in patterns.indices.filter({ $0 % 2 == 1 }) + patterns.indices.filter({ $0 % 2 == 0 }) {
      index.remove(patterns[number], number: UInt64(number))
      left.removeAll { $0 == number }
      guard index.count == left.count else { throw ProbeViolation("the index counts \(index.count)") }
      guard let name = names.first else { continue }
      guard index.values(selecting: name) == left.filter({ patterns[$0].selects(name) }) else {
        throw ProbeViolation("the index without \(patterns[number]) has something else for \(name)")
      }
    }
  }

  private static func check(_ pattern: TopicPattern, _ name: String) throws {
    let (ours, theirs) = (tokens(pattern.description), tokens(name))
    let matches = matches(ours[...], theirs[...])
    let isPrivate = theirs[0].utf8.first == UInt8(ascii: "$") || theirs[0] == "_inbox"
    let selects = matches && !(isPrivate && (ours[0] == "*" || ours[0] == ">"))
    guard pattern.matches(name) == matches, pattern.selects(name) == selects else {
      throw ProbeViolation("\(pattern) matches \(name): \(!matches), or selects it: \(!selects)")
    }
  }

  private static func matches(_ pattern: ArraySlice<String>, _ name: ArraySlice<String>) -> Bool {
    guard let first = pattern.first else { return name.isEmpty }
    if first == ">" { return !name.isEmpty }
    guard let token = name.first, first == "*" || first == token else { return false }
    return matches(pattern.dropFirst(), name.dropFirst())
  }

  private static func isName(_ text: String) -> Bool { (try? TopicName.validate(text)) != nil }

  // MARK: Settings

  /// Decodes `bytes` as a topic's settings. Valid settings must be reported unchanged, and survive encoding.
  static func settings(_ bytes: [UInt8]) throws {
    let told = try? withExactMemory(bytes) { bytes in
      var reader = ByteReader(bytes)
      return try TopicSettings(from: &reader, unknown: .ignore)
    }
    do {
      let asked = try withExactMemory(bytes) { bytes in
        var reader = ByteReader(bytes)
        return try TopicSettings(from: &reader, unknown: .refuse)
      }
      guard asked == told else { throw ProbeViolation("\(asked) is told as \(String(describing: told))") }
    } catch let error as WireError {
      guard error.code == .invalidSetting || told == nil && error.code == .malformedFrame else {
        throw ProbeViolation("settings are refused with \(error)")
      }
    }
    guard let told else { return }
    var writer = ByteWriter()
    told.encode(into: &writer)
    let again = try withExactMemory(writer.bytes) { bytes in
      var reader = ByteReader(bytes)
      return try TopicSettings(from: &reader, unknown: .refuse)
    }
    guard again == told else { throw ProbeViolation("\(told) isn't the same after encoding") }
  }
}
