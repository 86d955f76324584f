/// How much is requested, and when more.
enum DemandRule: Equatable {
  case unlimited
  /// So many at a time; as many again when all of them are printed.
  case rounds(of: Int)
  /// As many as keep the output busy, and not more bytes than a bound, as far as past records tell.
  case window
}

/// Counts what was requested, has come, and was printed, and says when to request how much.
struct DemandLedger {
  /// With a window, about so many bytes are under way.
  private static let windowBytes = 8 << 20
  private static let windowRecords = 1...65_536
  /// The window before anything is known about the records' size.
  private static let firstWindow = 256

  private let rule: DemandRule
  /// All that may ever be requested.
  private let limit: UInt64
  private var window = Self.firstWindow

  private(set) var requested: UInt64 = 0
  private(set) var received: UInt64 = 0
  private(set) var printed: UInt64 = 0

  /// - Parameter limit: how many records are wanted at all; nil for every one.
  init(_ rule: DemandRule, limit: UInt64?) {
    self.rule = rule
    self.limit = limit ?? .max
  }

  var isUnlimited: Bool { rule == .unlimited && limit == .max }

  /// Everything that was requested has come: nothing follows before more is requested.
  var isSatisfied: Bool { received == requested && !isUnlimited }

  /// Everything that is wanted at all has come.
  var isComplete: Bool { received == limit }

  var allPrinted: Bool { printed == received }

  /// What was requested and hasn't come is requested again, of another subscription.
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

  /// What to request now: 0 for nothing, nil for everything.
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
