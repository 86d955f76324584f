import Glibc

/// Where records come from, opened.
enum Input {
  case messages([String])
  case descriptor(Int32)

  /// - Throws: `InputError` for a file that can't be opened.
  init(_ source: PubCommand.Source) throws(InputError) {
    switch source {
    case .messages(let messages):
      self = .messages(messages)
    case .standardInput:
      self = .descriptor(STDIN_FILENO)
    case .file(let path):
      let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else {
        throw InputError(description: unsafe "cannot open \(path): \(String(cString: strerror(errno)))")
      }
      self = .descriptor(descriptor)
    }
  }
}
