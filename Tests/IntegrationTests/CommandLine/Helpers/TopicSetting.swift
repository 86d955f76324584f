/// A topic setting with a value other than its default, and its form in `sluice topic show --json`.
struct TopicSetting {
  let option: String
  /// The form in options, files and text output.
  let value: String
  /// The member of the object, and its text.
  let member: String
  let shown: String

  init(_ option: String, _ value: String, _ member: String? = nil, _ shown: String? = nil) {
    self.option = option
    self.value = value
    self.member = member ?? option.map { $0 == "-" ? "_" : String($0) }.joined()
    self.shown = shown ?? value
  }

  static let all = [
    TopicSetting("replay-records", "10"), TopicSetting("replay-bytes", "1MiB", nil, "1048576"),
    TopicSetting("replay-age", "1h", "replay_age_ms", "3600000"), TopicSetting("scope", "while-connected"),
    TopicSetting("flow", "lossless"), TopicSetting("flow", "fastest"), TopicSetting("buffer-records", "7"),
    TopicSetting("buffer-bytes", "2MiB", nil, "2097152"), TopicSetting("without-subscribers", "hold"),
    TopicSetting("without-subscribers", "drop"), TopicSetting("connect", "auto:2"),
    TopicSetting("connect", "manual"),
    TopicSetting("lag", "fail"), TopicSetting("auto-delete", "on", nil, "true"),
    TopicSetting("compact", "on", nil, "true"), TopicSetting("storage", "durable"),
    TopicSetting("sync", "os"), TopicSetting("sync", "50ms"), TopicSetting("connect", "auto-stay:2"),
    TopicSetting("when-producer-lost", "fail:30s"),
  ]

  var arguments: [String] { ["--\(option)=\(value)"] }

  /// Whether an object contains this setting.
  func holds(in object: [String: Any]) -> Bool {
    switch object[member] {
    case let text as String: text == shown
    case let number as Int where shown.first?.isNumber == true: "\(number)" == shown
    case let flag as Bool: "\(flag)" == shown
    default: false
    }
  }
}
