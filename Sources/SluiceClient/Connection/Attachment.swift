/// Whom a stream of the connection belongs to, and who waits for one while there is none.
enum Attachment {
  case subscription(RemoteSubscription)
  case publication(Publication)
  case request(Request)
}

/// Those who wait for a connection, in the order in which they came.
struct Parking {
  private var waiting: [UInt64: Attachment] = [:]
  private var last: UInt64 = 0

  /// Returns a ticket to leave with.
  mutating func add(_ attachment: Attachment) -> UInt64 {
    last += 1
    waiting[last] = attachment
    return last
  }

  mutating func remove(_ ticket: UInt64) {
    waiting[ticket] = nil
  }

  /// All of them. Nobody waits then.
  mutating func removeAll() -> [Attachment] {
    let all = exchange(&waiting, for: [:])
    return all.keys.sorted().compactMap { all[$0] }
  }
}
