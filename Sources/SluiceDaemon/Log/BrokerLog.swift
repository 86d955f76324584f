import SluiceBroker
import SluiceCommand
import SluiceIO
import Synchronization

/// Writes the broker's events to the log, with a limit on the lines of each kind per second.
///
/// With `audits`, events about authentication, authorisation and administration are marked, and written at every log level. The limit also applies to failed
/// attempts, since clients can cause any number of them.
final class BrokerLog: Sendable {
  private let logger: Logger
  private let writesAudits: Atomic<Bool>
  /// Calls a closure after a number of milliseconds, on any thread.
  private let later: @Sendable (Int64, @escaping @Sendable () -> Void) -> Void
  private let budget = Mutex(LineBudget<EventLine.Kind>())

  /// - Parameter audits: whether audit lines are marked and always written.
  init(
    _ logger: Logger, audits: Bool,
    later: @escaping @Sendable (Int64, @escaping @Sendable () -> Void) -> Void
  ) {
    self.logger = logger
    writesAudits = Atomic(audits)
    self.later = later
  }

  /// Whether audit lines are marked and always written. From any thread.
  var audits: Bool {
    get { writesAudits.load(ordering: .relaxed) }
    set { writesAudits.store(newValue, ordering: .relaxed) }
  }

  /// From any thread.
  func note(_ event: BrokerEvent) {
    var line = EventLine(event)
    if !audits { line.isAudit = false }
    guard logger.writes(line.level, isAudit: line.isAudit) else { return }
    if let limit = line.limit {
      let verdict = budget.withLock { $0.spend(on: line.kind, atMost: limit, now: WallTime.now) }
      if verdict.isFirstLeftOut { later(LineBudget<EventLine.Kind>.span) { [self] in reportLeftOut() } }
      guard verdict.isWritten else { return }
    }
    write(line)
  }

  private func write(_ line: EventLine) {
    logger.log(line.level, line.message, fields: line.fields, isAudit: line.isAudit)
  }

  /// Logs the number of suppressed lines.
  private func reportLeftOut() {
    for (kind, count) in budget.withLock({ $0.takeLeftOut() }) {
      var line = EventLine(leftOut: count, of: kind)
      if !audits { line.isAudit = false }
      write(line)
    }
  }
}

/// Limits the lines of each kind per second, so that no client can flood the log, and counts suppressed lines.
struct LineBudget<Kind: Hashable> {
  struct Verdict: Hashable {
    var isWritten: Bool
    /// Whether it is the first suppressed line since the last report.
    var isFirstLeftOut = false
  }

  /// In milliseconds.
  static var span: Int64 { 1_000 }

  private struct Account {
    var since: Int64
    var count = 0
    var leftOut = 0
  }

  private var accounts: [Kind: Account] = [:]

  /// Counts a line, and decides whether it is written.
  ///
  /// - Parameters:
  ///   - limit: the most lines per second.
  ///   - now: milliseconds since 1970.
  mutating func spend(on kind: Kind, atMost limit: Int, now: Int64) -> Verdict {
    var account = accounts[kind] ?? Account(since: now)
    defer { accounts[kind] = account }
    // The clock may have been set back.
    if !(account.since..<account.since + Self.span).contains(now) {
      account.since = now
      account.count = 0
    }
    account.count += 1
    if account.count <= limit { return Verdict(isWritten: true) }
    account.leftOut += 1
    return Verdict(isWritten: false, isFirstLeftOut: accounts.values.allSatisfy { $0.leftOut == 0 })
  }

  /// Returns and clears the numbers of suppressed lines.
  mutating func takeLeftOut() -> [(kind: Kind, count: Int)] {
    var taken: [(kind: Kind, count: Int)] = []
    for (kind, account) in accounts where account.leftOut > 0 {
      taken.append((kind, account.leftOut))
      accounts[kind]?.leftOut = 0
    }
    return taken
  }
}

/// Writes failed handshakes to the log, with a limit per minute, since clients can cause any number of them.
final class HandshakeLog: Sendable {
  private static let perMinute = 20

  private let logger: Logger
  private let state = Mutex((minute: Int64(0), count: 0))

  init(_ logger: Logger) {
    self.logger = logger
  }

  /// From any thread.
  func note(_ peer: SocketAddress, _ error: IOError) {
    let minute = WallTime.now / 60_000
    let count = state.withLock { state in
      if state.minute != minute { state = (minute, 0) }
      state.count += 1
      return state.count
    }
    guard count <= Self.perMinute else { return }
    logger.log(
      .info, "a client's TLS handshake failed",
      ["peer": .text(peer.description), "cause": .text(error.reason ?? error.description)])
    if count == Self.perMinute {
      logger.log(.info, "further failed TLS handshakes aren't logged in this minute")
    }
  }
}
