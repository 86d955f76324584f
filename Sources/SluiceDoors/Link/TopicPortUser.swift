import SluiceWire

/// Receives the records that a ``TopicPort`` reads, and the results of its publications. Called on the port's loop.
protocol TopicPortUser: AnyObject {
  /// The topic differs from the topic that was read before: records read so far don't count.
  ///
  /// - Parameter first: the offset of its oldest record; older ones were trimmed.
  func portBegan(first: UInt64)

  /// The topic continues in another epoch: records read so far still count.
  func portContinues()

  /// A record, in place.
  func portHas(_ record: BatchIterator.Record, at offset: UInt64)

  /// Unread records were trimmed: the next record has that offset or a later one.
  func portSkipped(to offset: UInt64)

  /// The publication is open, and all existing records have been read. Called again after each interruption.
  func portIsCurrent()

  /// This many of the oldest unacknowledged records are now acknowledged.
  func portStored(_ count: Int)

  /// The port has ended: the broker has refused it permanently, or has stopped.
  func portEnded(_ error: ErrorCode)
}

extension TopicPortUser {
  func portBegan(first: UInt64) {}
  func portContinues() {}
  func portHas(_ record: BatchIterator.Record, at offset: UInt64) {}
  func portSkipped(to offset: UInt64) {}
  func portIsCurrent() {}
  func portStored(_ count: Int) {}
  func portEnded(_ error: ErrorCode) {}
}

extension TopicSettings {
  /// The settings of a durable topic that keeps every record until it is trimmed.
  static var untilTrimmed: TopicSettings {
    var settings = TopicSettings(
      replayRecords: unlimited, replayBytes: unlimited, replayAge: unlimited)
    settings.storage = .durable
    settings.sync = .always
    return settings
  }
}
