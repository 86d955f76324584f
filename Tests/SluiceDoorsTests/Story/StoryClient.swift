/// A client that publishes one record after the other, and sends again on its next connection what it doesn't know to be in the log.
protocol StoryWriter: AnyObject {
  /// Whether the record that was published last is in the log.
  var isIdle: Bool { get }

  func publish(_ record: DoorRecord)

  /// Takes what has come.
  func look()

  /// Loses the connection and makes another one.
  func lose()
}

/// A client that reads a topic from its beginning, and goes on behind what it has when its connection is lost.
protocol StoryReader: AnyObject {
  var records: [DoorRecord] { get }

  /// Takes what has come.
  func look()

  /// Loses the connection and makes another one.
  func lose()
}
