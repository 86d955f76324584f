import SluiceWire

/// A preset of a topic's settings as people write it.
public enum TopicPreset {
  /// What a preset can be, for people.
  public static let forms = "shared[:N], shared-forever[:N], replayed:N, back-pressured or one-shot"

  /// Names that are offered.
  static let choices = ["shared", "shared-forever", "replayed:1", "back-pressured", "one-shot"]

  /// Parses what ``forms`` says.
  public static func parse(_ text: String) throws(ValueError) -> TopicSettings {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    switch (parts[0], parts.count > 1 ? parts[1] : nil) {
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
      if let near = Spelling.nearest(to: text, in: names), near != text {
        throw ValueError("there is no preset '\(text)'; did you mean '\(near)'?")
      }
      throw ValueError("there is no preset '\(text)'; there are \(names.joined(separator: ", "))")
    }
  }
}
