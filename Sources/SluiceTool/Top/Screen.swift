import Glibc
import SluiceCommand
import SluiceIO

/// A terminal's full screen, and its keys, while it is open.
// Unchecked: used on the loop only.
final class Screen: @unchecked Sendable {
  private let descriptor: Int32
  /// The terminal's former mode; nil while keys aren't read.
  private var former: termios?
  private var watch: DescriptorWatch?

  /// Nil if the descriptor isn't a terminal.
  init?(_ descriptor: Int32) {
    guard isatty(descriptor) == 1 else { return nil }
    self.descriptor = descriptor
  }

  /// Whether lines may have colors: NO_COLOR is unset or empty, and the terminal isn't a dumb one.
  static var hasColours: Bool {
    func variable(_ name: String) -> String { unsafe getenv(name).map { unsafe String(cString: $0) } ?? "" }
    return variable("NO_COLOR").isEmpty && variable("TERM") != "dumb"
  }

  /// In characters.
  var size: TopScreen.Size {
    var size = winsize()
    guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
      return TopScreen.Size(width: 80, height: 24)
    }
    return TopScreen.Size(width: Int(size.ws_col), height: Int(size.ws_row))
  }

  /// Switches to the terminal's alternate screen, and hides the cursor.
  func open() {
    Descriptor.write("\u{1B}[?1049h\u{1B}[?25l", to: descriptor)
  }

  /// Starts to read keys from `input` if it is a terminal, without echo and line buffering. Ctrl-C still sends a signal.
  func readKeys(from input: Int32, on loop: EpollLoop, _ body: @escaping ([TopKey]) -> Void) {
    var mode = termios()
    guard isatty(input) == 1, unsafe tcgetattr(input, &mode) == 0 else { return }
    former = mode
    mode.c_lflag &= ~tcflag_t(ICANON | ECHO)
    guard unsafe tcsetattr(input, TCSANOW, &mode) == 0 else { return former = nil }
    watch = try? DescriptorWatch(input, on: loop) { [weak self] in
      var bytes = [UInt8](repeating: 0, count: 256)
      let count = unsafe read(input, &bytes, bytes.count)
      if count > 0 { return body(TopKey.keys(in: bytes[..<count])) }
      // The terminal was closed.
      if count == 0 || errno != EINTR { self?.watch?.end() }
    }
  }

  /// Replaces the screen's contents. Returns nil on success.
  func show(_ lines: [String]) -> ProgramOutput.Failure? {
    ProgramOutput.draw(
      "\u{1B}[H" + lines.map { $0 + "\u{1B}[K" }.joined(separator: "\r\n") + "\u{1B}[J")
  }

  func close() {
    watch?.end()
    watch = nil
    if var former {
      unsafe _ = tcsetattr(STDIN_FILENO, TCSANOW, &former)
      self.former = nil
    }
    Descriptor.write("\u{1B}[?25h\u{1B}[?1049l", to: descriptor)
  }
}
