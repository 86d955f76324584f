/// A client that publishes one record after the other. On its next connection it sends a record again unless it knows that the record is in the log.
protocol StoryWriter: AnyObject {
  /// Whether the record that was published last is in the log.
  var isIdle: Bool { get }

  func publish(_ record: DoorRecord)

  /// Handles the bytes that arrived.
  func look()

  /// Drops the connection and opens another one.
  func lose()
}

/// A client that reads a topic from its beginning. When its connection is lost, it resumes after its last record.
protocol StoryReader: AnyObject {
  var records: [DoorRecord] { get }

  /// Handles the bytes that arrived.
  func look()

  /// Drops the connection and opens another one.
  func lose()
}
