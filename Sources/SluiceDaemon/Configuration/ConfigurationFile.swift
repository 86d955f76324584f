import Glibc
import SluiceCommand
import SluiceIO

/// What is wrong with a configuration: a line for each mistake, which begins with where it is.
struct ConfigurationMistakes: Error, Hashable {
  var lines: [String]
}

/// What a configuration file says: the values of settings as their options would take them.
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
    /// As the option takes it.
    var text: String
    var origin: String
  }

  let path: String
  private(set) var values: [Value]
  let rules: [Rule]

  /// A longer one is refused by the parser as well.
  private static let largest = 1 << 20

  /// Reads the file at `path`.
  ///
  /// - Throws: ``ConfigurationMistakes``: that it can't be read, or all that is wrong with it by itself.
  init(at path: String) throws(ConfigurationMistakes) {
    try self.init(path, try Self.contents(of: path))
  }

  /// - Parameter path: as mistakes name it, and what relative names of files in it are relative to.
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

  /// The file without the limit that a mistake is about; nil when it isn't about one.
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

  /// "sluiced.toml:3:1", or less where that isn't known.
  static func label(_ path: String, _ place: TOMLPlace) -> String {
    place.line == 0 ? path : "\(path):\(place.line):\(place.column)"
  }

  private static func contents(of path: String) throws(ConfigurationMistakes) -> [UInt8] {
    func failure(_ action: String) -> ConfigurationMistakes {
      ConfigurationMistakes(lines: [
        "\(path): cannot be \(action): \(unsafe String(cString: strerror(errno)))"
      ])
    }
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure("opened") }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while bytes.count <= largest {
      let count = unsafe read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw failure("read") }
      guard count > 0 else { break }
      bytes += chunk[..<count]
    }
    return bytes
  }
}

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
