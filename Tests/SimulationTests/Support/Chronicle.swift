import SluiceIO

/// What happened in a run: a number that tells two runs apart, and, if asked for, lines for people.
final class Chronicle {
  /// Of everything that was mixed in so far, in its order.
  private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
  /// Lines are made only where they are printed; they take most of the time otherwise.
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

  /// Notes an event of peer `client`, or of the whole when it is 0, at this time.
  func note(_ client: Int, _ what: @autoclosure () -> String) {
    mix(now().nanoseconds)
    mix(UInt64(bitPattern: Int64(client)))
    guard keepsLines else { return }
    lines.append("\(Self.seconds(now())) \(client == 0 ? "" : "peer \(client): ")\(what())")
    if lines.count > 2 * Self.mostLines { lines.removeFirst(Self.mostLines) }
  }

  /// A line of the network's own trace.
  func add(_ line: String) {
    lines.append(line)
  }

  static func seconds(_ time: MonotonicTime) -> String {
    let microseconds = time.nanoseconds / 1_000
    return "\(microseconds / 1_000_000).\(String(microseconds % 1_000_000 + 1_000_000).dropFirst())"
  }
}
