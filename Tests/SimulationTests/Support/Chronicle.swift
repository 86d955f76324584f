import SluiceIO

/// The events of a run, as a hash that identifies the run and, if requested, as lines of text.
final class Chronicle {
  /// The hash of everything mixed in so far, in order.
  private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
  /// Whether lines are recorded. That takes most of a run's time, so it is done only if they are printed.
  let keepsLines: Bool
  private(set) var lines: [String] = []
  private let now: () -> MonotonicTime

  private static let mostLines = 20_000

  init(keepsLines: Bool, now: @escaping () -> MonotonicTime) {
    self.keepsLines = keepsLines
    self.now = now
  }

  func mix(_ word: UInt64) {
    hash = (hash ^ word) &* 0x0000_0100_0000_01b3
    hash ^= hash >> 29
  }

  func mix(_ text: String) {
    for byte in text.utf8 { mix(UInt64(byte)) }
  }

  /// Records an event of peer `client` now; 0 stands for the whole simulation.
  func note(_ client: Int, _ what: @autoclosure () -> String) {
    mix(now().nanoseconds)
    mix(UInt64(bitPattern: Int64(client)))
    guard keepsLines else { return }
    lines.append("\(Self.seconds(now())) \(client == 0 ? "" : "peer \(client): ")\(what())")
    if lines.count > 2 * Self.mostLines { lines.removeFirst(Self.mostLines) }
  }

  /// Adds a line of the network's own trace.
  func add(_ line: String) {
    lines.append(line)
  }

  static func seconds(_ time: MonotonicTime) -> String {
    let microseconds = time.nanoseconds / 1_000
    return "\(microseconds / 1_000_000).\(String(microseconds % 1_000_000 + 1_000_000).dropFirst())"
  }
}
