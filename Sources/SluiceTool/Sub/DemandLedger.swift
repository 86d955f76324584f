/// The rule for requesting records.
enum DemandRule: Equatable {
  case unlimited
  /// A number at a time, and the same number again when all of them are printed.
  case rounds(of: Int)
  /// Enough to keep the output busy, up to a number of bytes that is estimated from past records.
  case window
}

/// Counts records that were requested, received and printed, and computes the next request.
struct DemandLedger {
  /// The approximate bytes in flight with a window.
  private static let windowBytes = 8 << 20
  private static let windowRecords = 1...65_536
  /// The window until the records' size is known.
  private static let firstWindow = 256

  private let rule: DemandRule
  /// The most records to request in total.
  private let limit: UInt64
  private var window = Self.firstWindow

  private(set) var requested: UInt64 = 0
  private(set) var received: UInt64 = 0
  private(set) var printed: UInt64 = 0

  /// - Parameter limit: how many records to request in total; nil for all.
  init(_ rule: DemandRule, limit: UInt64?) {
    self.rule = rule
    self.limit = limit ?? .max
  }

  var isUnlimited: Bool { rule == .unlimited && limit == .max }

  /// Whether all requested records have arrived: none follows before the next request.
  var isSatisfied: Bool { received == requested && !isUnlimited }

  /// Whether all records up to the limit have arrived.
  var isComplete: Bool { received == limit }

  var allPrinted: Bool { printed == received }

  /// Counts requested records that haven't arrived as not requested, since another subscription requests them.
  mutating func resubscribe() { requested = received }

  mutating func receive() {
    received += 1
  }

  mutating func print(_ amount: Printed) {
    printed += UInt64(amount.records)
    guard amount.records > 0 else { return }
    let fitting = Self.windowBytes / max(amount.bytes / amount.records, 1)
    window = min(max(fitting, Self.windowRecords.lowerBound), Self.windowRecords.upperBound)
  }

  /// How many records to request now; nil for unlimited demand.
  mutating func next() -> Int? {
    let wanted: UInt64
    switch rule {
    case .unlimited:
      if limit == .max { return nil }
      wanted = limit
    case .rounds(let count):
      wanted = printed == requested ? UInt64(count) : 0
    case .window:
      let open = requested - printed
      wanted = open <= UInt64(window / 2) ? UInt64(window) - open : 0
    }
    let count = min(wanted, limit - requested)
    requested += count
    return Int(count)
  }
}
