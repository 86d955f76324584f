import SluiceCommand
import SluiceIO

/// The mistakes in a configuration, one per line, each with its place first.
struct ConfigurationMistakes: Error, Hashable {
  var lines: [String]
}

/// The contents of a configuration file: the values of settings, as accepted by their options.
struct ConfigurationFile {
  struct Value {
    var option: String
    var texts: [String]
    /// "sluiced.toml:3:1: limits.max-record".
    var origin: String
  }

  /// Settings for new topics whose names match a pattern.
  struct Rule {
    var pattern: String
    /// In the notation of the option.
    var text: String
    var origin: String
  }

  let path: String
  private(set) var values: [Value]
  let rules: [Rule]

  /// The longest file in bytes. The parser rejects longer ones.
  private static let largest = 1 << 20

  /// Reads the file at `path`.
  ///
  /// - Throws: ``ConfigurationMistakes`` with all mistakes in the file, or the reason why it can't be read.
  init(at path: String) throws(ConfigurationMistakes) {
    try self.init(path, try Self.contents(of: path))
  }

  /// - Parameter path: names the file in mistakes; its directory is the base of relative paths in it.
  init(_ path: String, _ bytes: [UInt8]) throws(ConfigurationMistakes) {
    let text = TOMLRecovery(bytes)
    var mistakes = text.errors.map { error in
      ConfigurationReader.Mistake(
        place: error.place, line: "\(Self.label(path, error.place)): \(error.message)")
    }
    guard let document = text.document else { throw ConfigurationMistakes(lines: mistakes.map(\.line)) }
    var reader = ConfigurationReader(document, path: path)
    reader.read()
    mistakes += reader.mistakes
    guard mistakes.isEmpty else {
      throw ConfigurationMistakes(lines: mistakes.sorted { $0.place < $1.place }.map(\.line))
    }
    self.path = path
    values = reader.values
    rules = reader.rules
  }

  /// Returns the file without the limit that a mistake is about; nil if the mistake isn't about a limit.
  func withoutLimit(of mistake: String) -> ConfigurationFile? {
    let section = ": \(ConfigurationSection.limits.rawValue)."
    guard
      let index = values.firstIndex(where: {
        $0.origin.contains(section) && mistake.hasPrefix("\($0.origin):")
      })
    else { return nil }
    var file = self
    file.values.remove(at: index)
    return file
  }

  /// "sluiced.toml:3:1", or only the path if the place isn't known.
  static func label(_ path: String, _ place: TOMLPlace) -> String {
    place.line == 0 ? path : "\(path):\(place.line):\(place.column)"
  }

  private static func contents(of path: String) throws(ConfigurationMistakes) -> [UInt8] {
    do {
      return try FileBytes.read(path, limit: largest + 1)
    } catch {
      let action = error.action == "open" ? "opened" : "read"
      throw ConfigurationMistakes(lines: ["\(path): cannot be \(action): \(error.reason)"])
    }
  }
}

/// The sources of the daemon's settings: command line, environment, and a file, which can be read again.
struct SettingsSource {
  let arguments: ParsedArguments
  /// Nil without a file.
  let path: String?

  /// - Throws: ``ConfigurationMistakes`` with all mistakes in the file itself; or with the file's limits that are out of range, and the first mistake in the
  ///   combination of options, environment and file.
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
        // The message about an option refers to the help, the message about the file doesn't.
        let isOfFile = path.map { error.description.hasPrefix($0) } ?? false
        lines.append(isOfFile ? error.description : Complaint.usage(error, of: "sluiced"))
        // Limits are checked one by one, so the others can be checked without this one.
        guard isOfFile, let rest = file?.withoutLimit(of: error.description) else {
          throw ConfigurationMistakes(lines: lines)
        }
        file = rest
      }
    }
  }

  /// Adds the place in the configuration to a message about a file that the configuration names.
  func attributed(_ message: String) -> String {
    guard let path, let file = try? ConfigurationFile(at: path) else { return message }
    let names = file.values.filter { value in value.texts.contains { message.contains($0) } }
    // Takes the longest name, since a name may be the prefix of another.
    let nearest = names.max { ($0.texts.first?.count ?? 0) < ($1.texts.first?.count ?? 0) }
    return nearest.map { "\($0.origin): \(message)" } ?? message
  }
}
