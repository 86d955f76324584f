import Glibc
import SluiceAccess
import SluiceCommand

/// Servers and credentials by name, and which of them is in use. In a file of the user's:
///
///     {"current":"prod","contexts":{"prod":{"server":["tls://broker.example"],"user":["alice"],"password":["secret"]}}}
///
/// The members of a context are options of the program, and `password` or `token`, the secret itself.
struct ContextFile {
  /// The options of a context by their names; for an option without value, an empty text.
  typealias Context = [String: [String]]

  static let secrets = ["password", "token"]
  /// More than any file has that a person makes.
  private static let longest = 1 << 20

  var contexts: [String: Context] = [:]
  /// The name of the context that is in use; nil for none.
  var current: String?

  /// `$XDG_CONFIG_HOME/sluice/contexts.json`, or the same in `~/.config`; nil without a home.
  static var path: String? {
    if let directory = Environment.value("XDG_CONFIG_HOME"), directory.hasPrefix("/") {
      return "\(directory)/sluice/contexts.json"
    }
    guard let home = Environment.value("HOME"), !home.isEmpty else { return nil }
    return "\(home)/.config/sluice/contexts.json"
  }

  init() {}

  /// The file as it is; empty when there is none.
  ///
  /// - Throws: `UsageError` when it can't be read, isn't such a file, or has a secret that other users may read.
  static func load() throws(UsageError) -> ContextFile {
    guard let path else { return ContextFile() }
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      if errno == ENOENT || errno == ENOTDIR { return ContextFile() }
      throw UsageError("cannot open \(path): \(Descriptor.reason())")
    }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else {
      throw UsageError("cannot read \(path): \(Descriptor.reason())")
    }
    let file: ContextFile
    do {
      file = try ContextFile(try FileBytes.read(descriptor, limit: longest))
    } catch let error as FileBytes.Failure {
      throw UsageError(error.message(of: path))
    } catch {
      throw UsageError("\(path): \(error)")
    }
    let isPrivate = status.st_mode & 0o077 == 0
    guard isPrivate || !file.hasSecret else {
      throw UsageError(
        "\(path) contains a secret, and other users can read it (mode \(String(status.st_mode & 0o777, radix: 8))); run chmod 600 \(path), and replace the secret"
      )
    }
    return file
  }

  private var hasSecret: Bool {
    contexts.values.contains { context in Self.secrets.contains { context[$0] != nil } }
  }

  /// - Throws: `ValueError` for what isn't such a file.
  init(_ bytes: [UInt8]) throws(ValueError) {
    guard let members = try JSONReader.read(bytes).object else { throw ValueError("it isn't an object") }
    current = members["current"]?.text
    for (name, content) in members["contexts"]?.object ?? [:] {
      guard let options = content.object else { throw ValueError("context \(name) isn't an object") }
      var context = Context()
      for (option, values) in options {
        guard let values = values.array else { throw ValueError("\(option) of context \(name) isn't a list") }
        context[option] = values.compactMap(\.text)
      }
      contexts[name] = context
    }
  }

  var json: JSON {
    let contexts = contexts.sorted { $0.key < $1.key }.map { name, context in
      (
        name,
        JSON.object(
          context.sorted { $0.key < $1.key }.map { ($0.key, JSON.array($0.value.map { .text($0) })) })
          as JSON?
      )
    }
    return .object([("current", current.map { .text($0) }), ("contexts", .object(contexts))])
  }

  /// Changes the file, whole or not at all, after processes that are changing it. A link is followed. Only this user may read the new file.
  ///
  /// - Parameter change: when it throws, nothing has happened.
  /// - Returns: what `change` returns.
  /// - Throws: `UsageError` of `change`, and when the file can't be read or replaced.
  static func edit<Answer>(
    _ change: (inout ContextFile) throws(UsageError) -> Answer
  ) throws(UsageError) -> Answer {
    guard let path else {
      throw UsageError("contexts can't be stored: neither XDG_CONFIG_HOME nor HOME is set")
    }
    let directory = FilePath(FileReplacement.directory(of: path))
    if let reason = directory.makeDirectory(mode: 0o700) {
      throw UsageError("cannot create \(directory): \(reason)")
    }
    do {
      let place = try FileReplacement.place(of: path, making: true).place
      return try FileReplacement.locking(directoryOf: place) {
        var file = try load()
        let answer = try change(&file)
        try FileReplacement.replace(place, with: Array(file.json.line.utf8), mode: 0o600, owner: nil)
        return answer
      }
    } catch let error as UsageError {
      throw error
    } catch {
      throw UsageError("\(error)")
    }
  }

  /// The context of that name.
  ///
  /// - Throws: `UsageError` when there is none.
  func find(_ name: String) throws(UsageError) -> Context {
    if let context = contexts[name] { return context }
    let names = contexts.keys.sorted()
    let advice = names.isEmpty ? "; sluice context add creates one" : Spelling.advice(for: name, in: names)
    throw UsageError("there is no context \(name)\(advice)")
  }
}

extension ParsedArguments {
  /// The options of a context, as if they had been given.
  init(_ context: ContextFile.Context, named name: String) {
    self.init()
    for (option, values) in context { add(option, values, from: "context \(name)") }
  }
}
