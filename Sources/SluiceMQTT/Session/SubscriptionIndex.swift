/// An index of filters and free numbers in a session's table of subscriptions, so that finding one doesn't search the table.
///
/// It is derived from the table, and isn't part of the equality of sessions.
struct SubscriptionIndex: Hashable, Sendable {
  typealias Table = [MQTTSessionState.Subscription?]

  /// Tables up to this length are searched without an index, which would be larger than the rest of the session.
  private static let shortTable = 16

  /// Numbers by the bytes of filters, because canonically equivalent strings are different filters. Empty for a short table.
  private var numbers: [[UInt8]: UInt16] = [:]
  /// No number below it is free.
  private var firstFree: UInt16 = 0

  static func == (_: Self, _: Self) -> Bool { true }

  func hash(into _: inout Hasher) {}

  func number(of filter: String, in table: Table) -> UInt16? {
    guard table.count <= Self.shortTable else { return numbers[Array(filter.utf8)] }
    return table.firstIndex { $0?.filter.description.utf8.elementsEqual(filter.utf8) ?? false }
      .map { UInt16($0) }
  }

  /// The lowest number without a subscription; the table's length if there is none.
  mutating func lowestFree(in table: Table) -> Int {
    while Int(firstFree) < table.count, table[Int(firstFree)] != nil { firstFree += 1 }
    return Int(firstFree)
  }

  /// Notes that the table has another subscription, or none, at a number.
  mutating func update(_ number: Int, from former: String?, in table: Table) {
    if table[number] == nil { firstFree = min(firstFree, UInt16(number)) }
    guard table.count > Self.shortTable else { return }
    guard !numbers.isEmpty else { return build(from: table) }
    if let former = former.map({ Array($0.utf8) }), numbers[former] == UInt16(number) {
      numbers[former] = nil
    }
    if let filter = table[number]?.filter.description { numbers[Array(filter.utf8)] = UInt16(number) }
  }

  private mutating func build(from table: Table) {
    for (number, subscription) in table.enumerated() {
      guard let subscription else { continue }
      numbers[Array(subscription.filter.description.utf8)] = UInt16(number)
    }
  }
}
