/// What waits for records of this process to come back in the log of all nodes, in their order.
struct MQTTOutstandingRecords {
  /// Called with whether the session is kept.
  typealias Completion = @Sendable (Bool) -> Void

  private var waiting: [(serial: UInt64, body: Completion)] = []

  /// - Parameter serial: that of the record, behind those before.
  mutating func append(_ serial: UInt64, _ body: @escaping Completion) { waiting.append((serial, body)) }

  /// The record of that serial has come back: earlier ones, which haven't, don't any more.
  ///
  /// - Returns: what waits for that one.
  mutating func take(_ serial: UInt64) -> Completion? {
    let count = waiting.prefix { $0.serial <= serial }.count
    guard count > 0 else { return nil }
    let last = waiting[count - 1]
    waiting.removeFirst(count)
    return last.serial == serial ? last.body : nil
  }

  mutating func removeAll() { waiting = [] }
}
