import Glibc
import SluiceWire

/// A program's standard output. All text is written through this type, and an unwritten text is a failure.
public enum ProgramOutput {
  /// The reason why a text wasn't fully written.
  public enum Failure: Error, Equatable, Sendable {
    /// The pipe has no reader, which is no failure of the program.
    case closedPipe
    /// Any other error, such as a full disk or a closed output, with the system's message.
    case failed(String)

    /// The exit code, and the message; nil for no message.
    public var ending: (code: ExitCode, complaint: String?) {
      switch self {
      case .closedPipe: (.success, nil)
      case .failed(let reason): (.failure, "cannot write to standard output: \(reason)")
      }
    }
  }

  public static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

  /// Writes whole lines. Control characters other than line breaks and tabs are escaped.
  ///
  /// - Returns: nil on success.
  public static func write(_ lines: String) -> Failure? {
    failure(Descriptor.write(ShownText.escaped(lines, in: .lines), to: STDOUT_FILENO))
  }

  /// Writes a screen with the program's own escape sequences.
  ///
  /// - Returns: nil on success.
  public static func draw(_ screen: String) -> Failure? {
    failure(Descriptor.write(screen, to: STDOUT_FILENO))
  }

  /// Writes bytes unchanged.
  ///
  /// - Returns: nil on success.
  public static func write(exactly bytes: UnsafeRawBufferPointer) -> Failure? {
    unsafe failure(Descriptor.writeAll(bytes, to: STDOUT_FILENO))
  }

  /// Writes lines before the program ends, and reports a failure on standard error.
  ///
  /// - Returns: the program's exit code.
  public static func finish(_ lines: String, by program: String) -> ExitCode {
    guard let ending = write(lines)?.ending else { return .success }
    if let complaint = ending.complaint { Complaint.write(complaint, by: program) }
    return ending.code
  }

  private static func failure(_ code: Int32) -> Failure? {
    switch code {
    case 0: nil
    case EPIPE: .closedPipe
    default: .failed(Descriptor.reason(code))
    }
  }
}
