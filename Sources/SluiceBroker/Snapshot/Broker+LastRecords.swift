import SluiceWire

extension Broker {
  /// So many records are shown at the most, whoever asks for more.
  private static let shownRecords = 10_000

  /// Shows the newest records of a topic: of a durable one those that are still in memory. Nothing is attached for it, and nobody waits
  /// for it. From any thread.
  ///
  /// - Parameters:
  ///   - count: the most records.
  ///   - bytes: the most bytes of them in all, keys and headers included.
  ///   - completion: called once, with the records from the oldest to the newest, before this returns; with nil when there is no such topic.
  public func lastRecords(
    of topic: String, count: Int, bytes: Int, completion: @Sendable ([RecordSnapshot]?) -> Void
  ) {
    let log = core.registry.find(topic)?.epoch.log
    completion(log?.newestRecords(min(count, Self.shownRecords), bytes: bytes))
  }
}
