import SluiceCommand

/// What the daemon was told when it was started: its command line and environment, and behind them a file, which can be read again.
struct SettingsSource {
  let arguments: ParsedArguments
  /// Nil without a file.
  let path: String?

  /// - Throws: ``ConfigurationMistakes``: one for what options, environment and file come to together, or all that is wrong with the file by
  ///   itself.
  func settings() throws(ConfigurationMistakes) -> DaemonSettings {
    let file: ConfigurationFile? = if let path { try ConfigurationFile(at: path) } else { nil }
    do {
      return try DaemonSettings(arguments, file: file)
    } catch {
      // Of options the help knows more, of a file its own page.
      let isOfFile = path.map { error.description.hasPrefix($0) } ?? false
      throw ConfigurationMistakes(
        lines: [isOfFile ? error.description : Complaint.usage(error, of: "sluiced")])
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
