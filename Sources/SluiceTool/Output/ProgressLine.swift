import Glibc
import SluiceCommand
import SluiceIO
import Synchronization

/// The progress of a long operation: one line of standard error that is rewritten several times per second, only on a terminal.
///
/// Belongs to the run's loop.
final class ProgressLine {
  /// The progress at one moment.
  struct Figures {
    enum Unit {
      case bytes
      case records
    }

    var done: UInt64
    /// Nil if the total isn't known.
    var total: UInt64?
    var unit: Unit
    /// A remark at the end: "3 not acknowledged yet".
    var note = ""
  }

  private static let interval = Duration.milliseconds(200)
  /// The time before the first line appears, so that short operations have none.
  private static let patience = Duration.milliseconds(500)

  private let run: Run
  private let figures: () -> Figures?
  private let begin: MonotonicTime
  let line: TerminalLine
  private var isOver = false

  /// Begins to show progress; does nothing if standard error isn't a terminal.
  ///
  /// - Parameters:
  ///   - run: the run, on whose loop the line is updated.
  ///   - figures: returns the present progress; nil to hide the line. Called on the loop.
  /// - Returns: the line, which other threads hide while they print; nil if standard error isn't a terminal.
  @discardableResult
  static func start(_ run: Run, _ figures: @escaping () -> Figures?) -> TerminalLine? {
    guard isatty(STDERR_FILENO) == 1 else { return nil }
    let progress = ProgressLine(run, figures)
    run.progress = progress
    progress.schedule(after: patience)
    return progress.line
  }

  private init(_ run: Run, _ figures: @escaping () -> Figures?) {
    self.run = run
    self.figures = figures
    begin = EpollLoop.time
    line = TerminalLine(STDERR_FILENO)
  }

  private func schedule(after time: Duration) {
    _ = run.loop.schedule(after: time) { [weak self] in
      guard let self, !isOver else { return }
      show()
      schedule(after: Self.interval)
    }
  }

  private func show() {
    guard let figures = figures() else { return clear() }
    let text = Self.text(figures, after: EpollLoop.time - begin, width: Self.width)
    line.show(TerminalStyle.standardError.dim(text))
  }

  /// Removes the line, so that other text can be written. It comes back with the next update.
  func clear() { line.clear() }

  /// Removes the line for good.
  func end() {
    clear()
    isOver = true
  }

  private static var width: Int {
    var size = winsize()
    guard unsafe ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
  }

  // MARK: Text

  /// "120MiB of 1.0GiB (12 %), 60MiB/s, 15s left", cut to a terminal of that width.
  static func text(_ figures: Figures, after time: Duration, width: Int) -> String {
    let seconds = max(Double(time.clampedNanoseconds) / 1e9, 0.001)
    let rate = Double(figures.done) / seconds
    var parts: [String] = []
    if let total = figures.total, total > 0 {
      // The total may have been an estimate.
      let done = min(figures.done, total)
      let share = Int(Double(done) / Double(total) * 100)
      parts.append("\(amount(figures.done, figures.unit)) of \(amount(total, figures.unit)) (\(share) %)")
    } else {
      parts.append(amount(figures.done, figures.unit))
    }
    parts.append("\(figures.unit == .bytes ? ByteSize.rounded(UInt64(rate)) : Magnitude.rounded(rate))/s")
    if let total = figures.total, rate > 0, total > figures.done {
      let left = (Double(total - figures.done) / rate).rounded(.up)
      parts.append("\(TimeSpan.rounded(.seconds(Int64(min(left, 1e9))))) left")
    }
    if !figures.note.isEmpty { parts.append(figures.note) }
    return String(parts.joined(separator: ", ").prefix(max(width - 1, 1)))
  }

  private static func amount(_ value: UInt64, _ unit: Figures.Unit) -> String {
    switch unit {
    case .bytes: ByteSize.rounded(value)
    case .records: "\(Magnitude.grouped(value)) record\(value == 1 ? "" : "s")"
    }
  }
}

/// The last line of a terminal, which is rewritten in place. From any thread.
final class TerminalLine: Sendable {
  private let descriptor: Int32
  private let isShown = Mutex(false)

  init(_ descriptor: Int32) {
    self.descriptor = descriptor
  }

  func show(_ text: String) {
    isShown.withLock { isShown in
      Descriptor.write("\r\u{1B}[K\(text)", to: descriptor)
      isShown = true
    }
  }

  /// Removes the line, if there is one.
  func clear() { hidden {} }

  /// Removes the line and runs `body`, which prints other text; the line isn't shown meanwhile.
  func hidden<Result>(_ body: () -> Result) -> Result {
    isShown.withLock { isShown in
      if isShown { Descriptor.write("\r\u{1B}[K", to: descriptor) }
      isShown = false
      return body()
    }
  }
}

/// Styles of text on a terminal, by the rules of no-color.org: none if `NO_COLOR` is set and not empty, if the terminal is a dumb one, or if the output isn't a
/// terminal.
struct TerminalStyle {
  static let standardError = TerminalStyle(STDERR_FILENO)

  private let isOn: Bool

  init(_ descriptor: Int32) {
    self.init(
      isTerminal: isatty(descriptor) == 1, noColor: Environment.value("NO_COLOR"),
      terminal: Environment.value("TERM"))
  }

  init(isTerminal: Bool, noColor: String?, terminal: String?) {
    isOn = isTerminal && noColor?.isEmpty ?? true && terminal != "dumb"
  }

  func dim(_ text: String) -> String { isOn ? "\u{1B}[2m\(text)\u{1B}[0m" : text }
}
