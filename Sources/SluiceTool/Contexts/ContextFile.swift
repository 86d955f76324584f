import Glibc
import SluiceAccess
import SluiceCommand

/// The user's file of contexts (servers and credentials by name), with the name of the one in use:
///
///     {"current":"prod","contexts":{"prod":{"server":["tls://broker.example"],"user":["alice"],"password":["secret"]}}}
///
/// The members of a context are options of the program, or a stored secret: `password` or `token`.
struct ContextFile {
  /// The values of a context's options by name; an option without a value has an empty text.
  typealias Context = [String: [String]]

  static let secrets = ["password", "token"]
  /// The longest file, in bytes; far more than a person writes.
  private static let longest = 1 << 20

  var contexts: [String: Context] = [:]
  /// The name of the context in use; nil for none.
  var current: String?

  /// `$XDG_CONFIG_HOME/sluice/contexts.json`, or the same in `~/.config`; nil if neither directory is known.
  static var path: String? {
    if let directory = Environment.value("XDG_CONFIG_HOME"), directory.hasPrefix("/") {
      return "\(directory)/sluice/contexts.json"
    }
    guard let home = Environment.value("HOME"), !home.isEmpty else { return nil }
    return "\(home)/.config/sluice/contexts.json"
  }

  init() {}

  /// Reads the file; returns an empty one if it doesn't exist.
  ///
  /// - Throws: `UsageError` if it can't be read, has another format, or contains a secret that other users can read.
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

  /// - Throws: `ValueError` if the bytes aren't such a file.
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

  /// Changes the file atomically, one process at a time. Follows a symbolic link. Only this user can read the new file.
  ///
  /// - Parameter change: if it throws, the file stays unchanged.
  /// - Returns: what `change` returns.
  /// - Throws: the `UsageError` of `change`; also if the file can't be read or replaced.
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
  /// - Throws: `UsageError` if it doesn't exist.
  func find(_ name: String) throws(UsageError) -> Context {
    if let context = contexts[name] { return context }
    let names = contexts.keys.sorted()
    let advice = names.isEmpty ? "; sluice context add creates one" : Spelling.advice(for: name, in: names)
    throw UsageError("there is no context \(name)\(advice)")
  }
}

extension ParsedArguments {
  /// Parsed arguments with the options of a context.
  init(_ context: ContextFile.Context, named name: String) {
    self.init()
    for (option, values) in context { add(option, values, from: "context \(name)") }
  }
}
