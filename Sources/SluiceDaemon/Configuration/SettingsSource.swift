import SluiceCommand

/// What the daemon was told when it was started: its command line and environment, and behind them a file, which can be read again.
struct SettingsSource {
  let arguments: ParsedArguments
  /// Nil without a file.
  let path: String?

  /// - Throws: ``ConfigurationMistakes``: all that is wrong with the file by itself; or the file's limits that are out of range, and the first
  ///   mistake of what options, environment and file come to together.
  func settings() throws(ConfigurationMistakes) -> DaemonSettings {
    var file: ConfigurationFile? = if let path { try ConfigurationFile(at: path) } else { nil }
    var lines: [String] = []
    while true {
      let result = Result { () throws(UsageError) in try DaemonSettings(arguments, file: file) }
      switch result {
      case .success(let settings):
        guard lines.isEmpty else { throw ConfigurationMistakes(lines: lines) }
        return settings
      case .failure(let error):
        // Of options the help knows more, of a file its own page.
        let isOfFile = path.map { error.description.hasPrefix($0) } ?? false
        lines.append(isOfFile ? error.description : Complaint.usage(error, of: "sluiced"))
        // Each limit is judged by itself: the others can be looked at without it.
        guard isOfFile, let rest = file?.withoutLimit(of: error.description) else {
          throw ConfigurationMistakes(lines: lines)
        }
        file = rest
      }
    }
  }

  /// What is wrong with a file that the configuration names, with the place where it does.
  func attributed(_ message: String) -> String {
    guard let path, let file = try? ConfigurationFile(at: path) else { return message }
    let names = file.values.filter { value in value.texts.contains { message.contains($0) } }
    // The longest: one may begin like another.
    let nearest = names.max { ($0.texts.first?.count ?? 0) < ($1.texts.first?.count ?? 0) }
    return nearest.map { "\($0.origin): \(message)" } ?? message
  }
}
