import Glibc
import SluiceWire

/// A program's standard output: texts leave by this type, and a text that can't be written is a failure.
public enum ProgramOutput {
  /// Why not all was written.
  public enum Failure: Error, Equatable, Sendable {
    /// The reader of the pipe is gone, which is no failure of the program.
    case closedPipe
    /// A disk without room, or an output that isn't open: the system's words.
    case failed(String)

    /// What to report, and with which code to end.
    public var ending: (code: ExitCode, complaint: String?) {
      switch self {
      case .closedPipe: (.success, nil)
      case .failed(let reason): (.failure, "cannot write to standard output: \(reason)")
      }
    }
  }

  public static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

  /// Writes whole lines, in which no character but line breaks and tabs controls a terminal.
  ///
  /// - Returns: nil once all is written.
  public static func write(_ lines: String) -> Failure? {
    failure(Descriptor.write(ShownText.escaped(lines, in: .lines), to: STDOUT_FILENO))
  }

  /// Writes a screen, whose escape sequences are the program's own.
  ///
  /// - Returns: nil once all is written.
  public static func draw(_ screen: String) -> Failure? {
    failure(Descriptor.write(screen, to: STDOUT_FILENO))
  }

  /// Writes bytes as they are.
  ///
  /// - Returns: nil once all are written.
  public static func write(exactly bytes: UnsafeRawBufferPointer) -> Failure? {
    unsafe failure(Descriptor.writeAll(bytes, to: STDOUT_FILENO))
  }

  /// Writes lines before the program ends, and complains if that is not possible.
  ///
  /// - Returns: how the program ends.
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
