/// Where filters and free numbers are in a session's table of subscriptions, so that neither costs a look at each of them.
///
/// It follows from the table, and is no part of what makes two sessions differ.
struct SubscriptionIndex: Hashable, Sendable {
  typealias Table = [MQTTSessionState.Subscription?]

  /// Tables up to that length are searched without an index, which would be most of what such a session has.
  private static let shortTable = 16

  /// Numbers by the bytes of filters, as text that is canonically equivalent is another filter. Empty for a short table.
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

  /// The lowest number without a subscription; the table's length for none.
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
