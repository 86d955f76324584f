import Glibc
import SluiceCommand

/// Where a new password comes from: a file, a terminal, or else standard input. Never the command line, which other users of the machine can see.
enum PasswordInput {
  case file(String)
  case standardInput

  static let option = CommandOption(
    "password-file", value: "FILE",
    help:
      "Read the password from there, up to the line break; else it is asked for, or read from standard input."
  )

  /// In characters.
  static let minimumLength = 8
  /// In bytes.
  static let maximumLength = 1024

  init(_ arguments: ParsedArguments) {
    self = arguments.text("password-file").map { .file($0) } ?? .standardInput
  }

  /// Reads it. Blocks; on a terminal it is asked for twice, without being shown.
  func read(for user: String) throws(AccessJob.Failure) -> String {
    switch self {
    case .file(let path):
      let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else {
        throw .init(unsafe "cannot open \(path): \(String(cString: strerror(errno)))")
      }
      defer { close(descriptor) }
      return try Self.checked(try Self.contents(of: descriptor, path))
    case .standardInput:
      guard Terminal.isThere else {
        return try Self.checked(try Self.contents(of: STDIN_FILENO, "standard input"))
      }
      let password = try Self.checked(try Self.ask("Password for \(user): "))
      guard try Self.ask("The same again: ") == password else {
        throw .init("the two passwords aren't the same; nothing was changed")
      }
      return password
    }
  }

  private static func ask(_ question: String) throws(AccessJob.Failure) -> String {
    let bytes = Terminal.hiding {
      Descriptor.write(question, to: STDERR_FILENO)
      return line()
    }
    return try text(bytes, "the terminal")
  }

  /// Up to a line break, or the end.
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

  /// All that is there, without one line break at its end.
  private static func contents(of descriptor: Int32, _ name: String) throws(AccessJob.Failure) -> String {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: maximumLength + 3)
    while bytes.count <= maximumLength + 2 {
      let count = unsafe Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .init(unsafe "cannot read \(name): \(String(cString: strerror(errno)))") }
      guard count > 0 else { break }
      bytes += chunk[..<count]
    }
    if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    return try text(bytes, name)
  }

  private static func text(_ bytes: [UInt8], _ name: String) throws(AccessJob.Failure) -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw .init("the password from \(name) isn't UTF-8")
    }
    return text
  }

  /// What a password has to be like.
  static func checked(_ password: String) throws(AccessJob.Failure) -> String {
    if password.isEmpty {
      throw .init("the password is empty; it needs \(minimumLength) characters at least")
    }
    guard password.utf8.count <= maximumLength else {
      throw .init("the password is longer than \(maximumLength) bytes; take a shorter one")
    }
    guard !password.utf8.contains(where: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) else {
      throw .init("the password has more than one line; put it into one")
    }
    guard !password.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
      throw .init("the password has a control character, which nobody can type")
    }
    guard password.count >= minimumLength else {
      let count = password.count
      throw .init(
        "the password has \(count) character\(count == 1 ? "" : "s"); it needs \(minimumLength) at least, and gets better with each more"
      )
    }
    return password
  }
}
