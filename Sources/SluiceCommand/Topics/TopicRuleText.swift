import SluiceWire

/// The notation of a rule for new topics: a pattern, then settings, separated by spaces.
///
///     orders.> flow=lossless replay-records=100
public enum TopicRuleText {
  public static func parse(_ text: String) throws(ValueError) -> (
    pattern: TopicPattern, settings: TopicSettings
  ) {
    var words = text.split(separator: " ")[...]
    guard let first = words.popFirst() else {
      throw ValueError("the rule is empty; write a pattern of topic names and settings")
    }
    let pattern = try Values.pattern(String(first))
    guard !words.isEmpty else {
      throw ValueError("'\(text)' sets nothing; add settings like flow=lossless after the pattern")
    }
    var settings = TopicSettings()
    for word in words {
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { throw ValueError("'\(word)' isn't a setting; write NAME=VALUE") }
      try TopicOption.read(String(parts[0]), String(parts[1]), into: &settings)
    }
    return (pattern, settings)
  }

  /// The rule as ``parse(_:)`` reads it.
  public static func write(_ pattern: TopicPattern, _ settings: TopicSettings) -> String {
    ([pattern.description] + TopicOption.written(settings).map { "\($0.name)=\($0.value)" })
      .joined(separator: " ")
  }
}

/// The notation of a preset of topic settings.
public enum TopicPreset {
  /// The forms of a preset, for messages.
  public static let forms = "shared[:N], shared-forever[:N], replayed:N, back-pressured or one-shot"

  /// Names for completion.
  static let choices = ["shared", "shared-forever", "replayed:1", "back-pressured", "one-shot"]

  /// Parses one of ``forms``.
  public static func parse(_ text: String) throws(ValueError) -> TopicSettings {
    switch Values.word(text) {
    case ("shared", nil): return .shared
    case ("shared", let count?): return .shared(replay: try Values.count()(count))
    case ("shared-forever", nil): return .shared(replay: 0, scope: .forever)
    case ("shared-forever", let count?): return .shared(replay: try Values.count()(count), scope: .forever)
    case ("replayed", let count?): return .replayed(try Values.count()(count))
    case ("back-pressured", nil): return .backPressured
    case ("one-shot", nil): return .oneShot
    default:
      let names = [
        "shared", "shared:N", "shared-forever", "shared-forever:N", "replayed:N", "back-pressured",
        "one-shot",
      ]
      throw ValueError("there is no preset '\(text)'\(Spelling.advice(for: text, in: names))")
    }
  }
}
