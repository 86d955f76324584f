import SluiceMQTT

/// State of a client that publishes: its topics, and messages that wait for answers.
///
/// Its properties are used for each message, and never while they change, so the run-time check of overlapping accesses is off.
final class MQTTPublishing {
  /// By the session's numbers.
  @safe @exclusivity(unchecked) var publications: [UInt16: MQTTPublication] = [:]
  /// The same, publications that are being closed, that of retained messages and that of the will, by stream of the link.
  @safe @exclusivity(unchecked) var byStream: [UInt32: MQTTPublication] = [:]
  /// The publication of the last message.
  @safe @exclusivity(unchecked) private(set) var last: (number: UInt16, publication: MQTTPublication)?
  /// The publication of retained messages.
  var retaining: MQTTPublication?
  /// Messages whose retained copies aren't stored yet, by identifier; with a token once their topic's log contains them.
  var copies: [UInt16: MQTTToken?] = [:]

  /// Numbers for publications without a stream, above those of streams.
  private var lastNumber: UInt32 = 1 << 31

  /// Adds a publication that waits to be reopened. Returns its number until then.
  func wait(_ publication: MQTTPublication) -> UInt32 {
    lastNumber += 1
    byStream[lastNumber] = publication
    return lastNumber
  }

  /// Returns the topic's publication that is being closed and is still open, if any.
  func closing(_ topic: String) -> MQTTPublication? {
    byStream.values.first { publication in
      guard publication.isClosing, publication.topic == topic else { return false }
      if case .topic = publication.role { return true }
      return false
    }
  }

  /// The publication with this number.
  func publication(_ number: UInt16) -> MQTTPublication? {
    if let last, last.number == number { return last.publication }
    guard let found = publications[number] else { return nil }
    last = (number, found)
    return found
  }

  /// The publication on a stream of the link.
  func publication(onStream stream: UInt32) -> MQTTPublication? {
    if let last, last.publication.stream == stream { return last.publication }
    return byStream[stream]
  }

  func set(_ number: UInt16, _ publication: MQTTPublication) {
    publications[number] = publication
    last = nil
  }

  /// Removes the topic's publication from its number.
  func remove(_ number: UInt16) -> MQTTPublication? {
    last = nil
    return publications.removeValue(forKey: number)
  }
}
