import Glibc
import Synchronization

/// The terminal on standard input, and whether it shows what is typed.
enum Terminal {
  /// How it was, while it doesn't.
  private static let hidden = Mutex<termios?>(nil)

  static var isThere: Bool { isatty(STDIN_FILENO) == 1 }

  /// Runs `body` while what is typed isn't shown.
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

  /// Shows again what is typed. From any thread.
  static func restore() {
    guard var settings = hidden.withLock({ $0.take() }) else { return }
    unsafe tcsetattr(STDIN_FILENO, TCSANOW, &settings)
  }
}
