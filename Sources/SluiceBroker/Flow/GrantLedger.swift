/// What a topic's producers have been granted and have not used yet, and how what may be granted is shared among them.
///
/// A value: who asks, what it has, and the topic's limit come in; what it gets more comes out. A grant can't be taken back, so
/// nobody gets more than its share of the limit, lest one that rests keeps the others waiting. When what rests with others
/// leaves nothing, one that has nothing gets a single record, or byte, all the same: the log has room for it.
struct GrantLedger: Hashable, Sendable {
  /// What one publication may still use.
  struct Allowance: Hashable, Sendable {
    var records: UInt64 = 0
    var bytes: UInt64 = 0

    /// Adds up; what is unlimited stays so.
    mutating func add(_ other: Allowance) {
      records = Self.sum(records, other.records)
      bytes = Self.sum(bytes, other.bytes)
    }

    /// Never below zero; what is unlimited stays so.
    mutating func subtract(_ other: Allowance) {
      if records != .max { records -= min(records, other.records) }
      if bytes != .max { bytes -= min(bytes, other.bytes) }
    }

    private static func sum(_ left: UInt64, _ right: UInt64) -> UInt64 {
      let sum = left.addingReportingOverflow(right)
      return sum.overflow ? .max : sum.partialValue
    }
  }

  /// What all publications together may still use. Equals the sum of what each one has: see ``Topic/grantViolation``.
  private(set) var outstanding = Allowance()

  /// What `producer` gets, on top of what it has.
  ///
  /// - Parameters:
  ///   - held: what the producer has left of earlier grants.
  ///   - limit: what all producers together may have.
  ///   - producers: how many there are, at least 1.
  ///   - window: the most that one may have.
  mutating func grant(
    to held: Allowance, limit: FlowLimit, producers: Int, window: Allowance
  ) -> Allowance {
    guard case .ahead(let records, let bytes) = limit else { return Allowance() }
    let more = Allowance(
      records: Self.share(
        held.records, outstanding.records, limit: records, producers: producers, window: window.records),
      bytes: Self.share(
        held.bytes, outstanding.bytes, limit: bytes, producers: producers, window: window.bytes))
    outstanding.add(more)
    return more
  }

  /// What a producer gets, on top of what it has, where nothing but its window limits it.
  static func share(to held: Allowance, window: Allowance) -> Allowance {
    Allowance(
      records: held.records <= window.records / 2 ? window.records - held.records : 0,
      bytes: held.bytes <= window.bytes / 2 ? window.bytes - held.bytes : 0)
  }

  /// The same, and counts it: the topic may be given a limit later.
  mutating func grant(to held: Allowance, window: Allowance) -> Allowance {
    let more = Self.share(to: held, window: window)
    outstanding.add(more)
    return more
  }

  private static func share(
    _ held: UInt64, _ outstanding: UInt64, limit: UInt64, producers: Int, window: UInt64
  ) -> UInt64 {
    guard limit > 0 else { return 0 }
    let share = min(max(limit / UInt64(max(producers, 1)), 1), window)
    // Grants come in portions: half of the share is used up before there is more.
    guard held <= share / 2 else { return 0 }
    let room = limit > outstanding ? limit - outstanding : 0
    let more = min(share - held, room)
    return more > 0 || held > 0 ? more : 1
  }

  /// A producer has used, or given up, what it was granted.
  mutating func returned(_ allowance: Allowance) {
    outstanding.subtract(allowance)
  }
}
