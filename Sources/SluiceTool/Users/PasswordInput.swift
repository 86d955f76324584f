import Glibc
import SluiceAccess
import SluiceCommand
import SluiceIO
import SluiceWire
import Synchronization

/// A job on users, keys or tokens, without a broker. Runs on a thread of its own, because hashing takes time and typing blocks.
enum AccessJob {
  /// The reason of a failure.
  struct Failure: Error, CustomStringConvertible {
    var message: String
    var description: String { message }

    init(_ message: String) {
      self.message = message
    }
  }

  /// Reads a file, or standard input if `path` is nil, up to `limit` bytes.
  static func read(_ path: String?, limit: Int) throws(Failure) -> [UInt8] {
    do {
      guard let path else { return try FileBytes.read(STDIN_FILENO, limit: limit) }
      return try FileBytes.read(path, limit: limit)
    } catch {
      throw Failure(error.message(of: path ?? "standard input"))
    }
  }

  /// Runs `body`, and ends the run with its text, or with the description of its error. Ctrl-C doesn't wait for it.
  static func start(_ run: Run, _ body: @escaping @Sendable () throws -> String) {
    answer(run) { (try body(), .success) }
  }

  /// The same with the exit code of an answer.
  static func answer(_ run: Run, _ body: @escaping @Sendable () throws -> (text: String, code: ExitCode)) {
    run.interrupted = {
      Terminal.restore()
      run.finish(.interrupted)
    }
    Threads.start {
      let result = Result(catching: body)
      run.loop.execute {
        switch result {
        case .success(let answer): if run.write(answer.text) { run.finish(answer.code) }
        case .failure(let error): run.finish(.failure, "\(error)")
        }
      }
    }
  }
}

/// The source of a new password: a file, a terminal, or standard input. Never the command line, which other users of the machine can see.
enum PasswordInput {
  case file(String)
  case standardInput

  static let option = CommandOption(
    "password-file", value: "FILE",
    help:
      "Read the password from the first line of FILE. Without it, type the password, or pass it on standard input."
  )

  /// In characters.
  static let minimumLength = 8
  /// In bytes.
  static let maximumLength = 1024

  init(_ arguments: ParsedArguments) {
    self = arguments.text("password-file").map { .file($0) } ?? .standardInput
  }

  /// Reads the password, and blocks meanwhile. On a terminal, asks for it twice without showing it.
  func read(for user: String) throws(AccessJob.Failure) -> String {
    switch self {
    case .file(let path):
      return try Self.checked(try Self.contents(of: path))
    case .standardInput:
      guard Terminal.isThere else {
        return try Self.checked(try Self.contents(of: nil))
      }
      let password = try Self.checked(try Self.ask("Password for \(user): "))
      guard try Self.ask("Repeat the password: ") == password else {
        throw .init("the two passwords differ; nothing was changed")
      }
      return password
    }
  }

  private static func ask(_ question: String) throws(AccessJob.Failure) -> String {
    let bytes = Terminal.hiding {
      Descriptor.write(ShownText.line(question), to: STDERR_FILENO)
      return line()
    }
    return try text(bytes, "the terminal")
  }

  /// Reads up to a line break or the end of the input.
  private static func line() -> [UInt8] {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while bytes.count <= maximumLength {
      let count = unsafe Glibc.read(STDIN_FILENO, &byte, 1)
      if count < 0, errno == EINTR { continue }
      guard count == 1, byte != UInt8(ascii: "\n") else { break }
      bytes.append(byte)
    }
    return bytes
  }

  /// Reads to the end, and removes one line break there.
  private static func contents(of path: String?) throws(AccessJob.Failure) -> String {
    var bytes = try AccessJob.read(path, limit: maximumLength + 3)
    if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    return try text(bytes, path ?? "standard input")
  }

  private static func text(_ bytes: [UInt8], _ name: String) throws(AccessJob.Failure) -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw .init("the password from \(name) isn't UTF-8")
    }
    return text
  }

  /// Checks a password's length and characters.
  static func checked(_ password: String) throws(AccessJob.Failure) -> String {
    if password.isEmpty {
      throw .init("the password is empty; use at least \(minimumLength) characters")
    }
    guard password.utf8.count <= maximumLength else {
      throw .init("the password is longer than \(maximumLength) bytes; use a shorter one")
    }
    guard !password.utf8.contains(where: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) else {
      throw .init("the password has more than one line; use a single line")
    }
    guard !password.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
      throw .init("the password has a control character, which can't be typed")
    }
    guard password.count >= minimumLength else {
      let count = password.count
      throw .init(
        "the password has \(count) character\(count == 1 ? "" : "s"); use at least \(minimumLength)"
      )
    }
    return password
  }
}

/// The terminal on standard input, and its echo.
enum Terminal {
  /// The settings to restore; nil unless typing is hidden.
  private static let hidden = Mutex<termios?>(nil)

  static var isThere: Bool { isatty(STDIN_FILENO) == 1 }

  /// Runs `body` without the terminal's echo.
  static func hiding<Value>(_ body: () -> Value) -> Value {
    var settings = termios()
    if unsafe tcgetattr(STDIN_FILENO, &settings) == 0 {
      hidden.withLock { $0 = settings }
      settings.c_lflag &= ~tcflag_t(ECHO)
      settings.c_lflag |= tcflag_t(ECHONL)
      unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
    }
    defer { restore() }
    return body()
  }

  /// Restores the terminal's settings. From any thread.
  static func restore() {
    guard var settings = hidden.withLock({ $0.take() }) else { return }
    unsafe tcsetattr(STDIN_FILENO, TCSANOW, &settings)
  }
}
