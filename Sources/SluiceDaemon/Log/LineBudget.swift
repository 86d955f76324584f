/// How many lines of each kind are written in a second, so that nobody can flood the log, and how many more there would have been.
struct LineBudget<Kind: Hashable> {
  struct Verdict: Hashable {
    var isWritten: Bool
    /// Nothing was left out before, since that was told last.
    var isFirstLeftOut = false
  }

  /// Milliseconds.
  static var span: Int64 { 1_000 }

  private struct Account {
    var since: Int64
    var count = 0
    var leftOut = 0
  }

  private var accounts: [Kind: Account] = [:]

  /// A line wants to be written.
  ///
  /// - Parameters:
  ///   - limit: the most in a second.
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

  /// How many lines weren't written since this was asked last.
  mutating func takeLeftOut() -> [(kind: Kind, count: Int)] {
    var taken: [(kind: Kind, count: Int)] = []
    for (kind, account) in accounts where account.leftOut > 0 {
      taken.append((kind, account.leftOut))
      accounts[kind]?.leftOut = 0
    }
    return taken
  }
}
