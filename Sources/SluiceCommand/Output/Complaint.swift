import Glibc

/// What a program says when it gives up: one line on standard error, begun with its name.
public enum Complaint {
  /// Writes "PROGRAM: MESSAGE".
  public static func write(_ message: String, by program: String) {
    Descriptor.write(line(message, by: program), to: STDERR_FILENO)
  }

  /// "PROGRAM: MESSAGE" and a line break. Control characters, as a message from elsewhere might have them, become question marks: it stays one line, and
  /// can't steer the terminal.
  public static func line(_ message: String, by program: String) -> String {
    let clean = String(
      String.UnicodeScalarView(
        message.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
    return "\(program): \(clean)\n"
  }

  /// A wrong usage, and where to read more.
  public static func usage(_ error: UsageError, of command: String) -> String {
    error.description.hasSuffix("--help)") ? error.description : "\(error) (see \(command) --help)"
  }
}
