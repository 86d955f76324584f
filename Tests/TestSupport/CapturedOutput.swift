import Glibc
import Synchronization

/// The output of a program on one of its descriptors, read as it arrives.
public final class CapturedOutput: Sendable {
  private struct State {
    var bytes: [UInt8] = []
    var isComplete = false
  }

  private let state = Mutex(State())

  /// Reads `descriptor` to its end, and closes it; nil for an output that isn't captured.
  init(_ descriptor: Int32?) {
    guard let descriptor else {
      state.withLock { $0.isComplete = true }
      return
    }
    _ = BackgroundThread { [self] in
      var chunk = [UInt8](repeating: 0, count: 1 << 16)
      while true {
        let count = read(descriptor, &chunk, chunk.count)
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else { break }
        state.withLock { $0.bytes += chunk[..<count] }
      }
      close(descriptor)
      state.withLock { $0.isComplete = true }
    }
  }

  public var bytes: [UInt8] { state.withLock { $0.bytes } }
  public var count: Int { state.withLock { $0.bytes.count } }
  public var text: String { String(decoding: bytes, as: UTF8.self) }

  /// The complete lines so far, without line breaks.
  public var lines: [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
  }

  func waitForEnd() throws {
    try eventually("the end of the output") { state.withLock { $0.isComplete } }
  }

  /// Waits until there are at least `count` bytes.
  public func wait(bytes count: Int, within seconds: Double = Deadline.patience) throws {
    try eventually("\(count) bytes of output; there are \(self.count)", within: seconds) {
      self.count >= count
    }
  }

  /// Waits for a line that starts with `prefix`, and returns it.
  public func line(
    startingWith prefix: String, within seconds: Double = Deadline.patience
  ) throws -> String {
    var found: String?
    try eventually("a line that begins with \(prefix); there is \(text.suffix(500))", within: seconds) {
      found = lines.first { $0.hasPrefix(prefix) }
      return found != nil
    }
    return found!
  }
}
