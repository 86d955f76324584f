/// The subscriptions of a session, by number. They outlive its connections.
struct NATSSubscriptions {
  private struct Entry {
    var subject: String
    var queue: String?
    /// How many more messages it accepts; nil without a limit.
    var remaining: UInt64?
  }

  /// The meaning of a message for its subscription.
  enum Delivery {
    /// It has ended.
    case unknown
    case more
    /// This is its last message.
    case last
  }

  /// The number of the subscription for all answers to requests. It isn't in the table.
  static let inboxNumber: UInt64 = 1

  private var entries: [UInt64: Entry] = [:]
  private var lastNumber = Self.inboxNumber

  mutating func add(_ subject: String, queue: String?, limit: UInt64?) -> UInt64 {
    lastNumber += 1
    entries[lastNumber] = Entry(subject: subject, queue: queue, remaining: limit)
    return lastNumber
  }

  /// Returns whether it existed.
  mutating func remove(_ number: UInt64) -> Bool { entries.removeValue(forKey: number) != nil }

  /// Removes all subscriptions. Returns the numbers, in order.
  mutating func removeAll() -> [UInt64] {
    let numbers = entries.keys.sorted()
    entries = [:]
    return numbers
  }

  /// Removes the subscriptions of a subject that the server has rejected. Returns the numbers, in order.
  mutating func removeAll(of subject: String) -> [UInt64] {
    let numbers = entries.filter { $0.value.subject == subject }.keys.sorted()
    for number in numbers { entries[number] = nil }
    return numbers
  }

  /// Counts a message. Removes a subscription after its last one.
  mutating func count(_ number: UInt64) -> Delivery {
    guard let remaining = entries[number].map(\.remaining) else { return .unknown }
    guard let remaining else { return .more }
    guard remaining > 1 else {
      entries[number] = nil
      return .last
    }
    entries[number]?.remaining = remaining - 1
    return .more
  }

  /// Encodes a subscription for a server.
  func encode(_ number: UInt64, into bytes: inout [UInt8]) {
    guard let entry = entries[number] else { return }
    NATSEncoder.subscribe(entry.subject, queue: entry.queue, number: number, into: &bytes)
    if let remaining = entry.remaining {
      NATSEncoder.unsubscribe(number, after: remaining, into: &bytes)
    }
  }

  /// Encodes all subscriptions for a server, in the order of their numbers.
  func encodeAll(into bytes: inout [UInt8]) {
    for number in entries.keys.sorted() { encode(number, into: &bytes) }
  }
}
