import Glibc
import SluiceWire

/// A program's messages: one line on standard error, which begins with its name.
public enum Complaint {
  /// Writes "PROGRAM: MESSAGE".
  public static func write(_ message: String, by program: String) {
    Descriptor.write(line(message, by: program), to: STDERR_FILENO)
  }

  /// "PROGRAM: MESSAGE" and a line break: one line, whatever the message contains.
  public static func line(_ message: String, by program: String) -> String {
    "\(program): \(ShownText.line(message))\n"
  }

  /// An error about arguments, with a reference to the help.
  public static func usage(_ error: UsageError, of command: String) -> String {
    error.description.hasSuffix("--help)") ? error.description : "\(error) (see \(command) --help)"
  }
}

/// The exit codes of the programs.
public enum ExitCode: Int32, Sendable {
  /// Success; the topic has completed.
  case success = 0
  /// Failure, with the reason on standard error.
  case failure = 1
  /// Wrong usage, or a configuration that can't be run.
  case usage = 2
  /// The topic has failed.
  case topicFailed = 3
  /// Ended by Ctrl-C.
  case interrupted = 130
  /// Ended by SIGTERM.
  case terminated = 143
}

/// The version of both programs.
public enum Version {
  public static let text = "0.1.0"

  /// The output of `--version`.
  public static func line(of program: String) -> String { "\(program) \(text)\n" }
}
