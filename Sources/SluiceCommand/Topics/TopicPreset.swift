import SluiceWire

/// A preset of a topic's settings as people write it.
public enum TopicPreset {
  /// `shared`, `shared:N`, `replayed:N`, `back-pressured` or `one-shot`.
  public static func parse(_ text: String) throws(ValueError) -> TopicSettings {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    switch (parts[0], parts.count > 1 ? parts[1] : nil) {
    case ("shared", nil): return .shared
    case ("shared", let count?): return .shared(replay: try Values.count()(count))
    case ("replayed", let count?): return .replayed(try Values.count()(count))
    case ("back-pressured", nil): return .backPressured
    case ("one-shot", nil): return .oneShot
    default:
      let names = ["shared", "shared:N", "replayed:N", "back-pressured", "one-shot"]
      if let near = Spelling.nearest(to: text, in: names), near != text {
        throw ValueError("there is no preset '\(text)'; did you mean '\(near)'?")
      }
      throw ValueError("there is no preset '\(text)'; there are \(names.joined(separator: ", "))")
    }
  }
}
