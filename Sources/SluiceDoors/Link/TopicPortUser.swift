import SluiceWire

/// Follows what a ``TopicPort`` reads, and what becomes of its records. Called on the port's loop.
protocol TopicPortUser: AnyObject {
  /// The topic is another one than before: what was read of it doesn't count.
  ///
  /// - Parameter first: the offset of its oldest record; older ones were trimmed.
  func portBegan(first: UInt64)

  /// The topic continues in another epoch: what was read counts.
  func portContinues()

  /// A record, in place.
  func portHas(_ record: BatchIterator.Record, at offset: UInt64)

  /// Records that weren't read were trimmed: the next one has that offset or a later one.
  func portSkipped(to offset: UInt64)

  /// The publication is open, and all existing records have been read. Called again after each interruption.
  func portIsCurrent()

  /// The oldest records that weren't acknowledged are, so many.
  func portStored(_ count: Int)

  /// The broker has refused the port for good, or the broker has stopped: the port has ended.
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
