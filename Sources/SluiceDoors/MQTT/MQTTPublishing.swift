import SluiceMQTT

/// What there is of a client that publishes: its topics, and what waits for their answers.
///
/// Its properties are used for each message, and by nothing while they change: overlapping accesses aren't checked for at run time.
final class MQTTPublishing {
  /// By the session's numbers.
  @safe @exclusivity(unchecked) var publications: [UInt16: MQTTPublication] = [:]
  /// The same and those that end, retained messages and the will among them, by streams of the link.
  @safe @exclusivity(unchecked) var byStream: [UInt32: MQTTPublication] = [:]
  /// The one that had the last message.
  @safe @exclusivity(unchecked) private(set) var last: (number: UInt16, publication: MQTTPublication)?
  /// That of retained messages.
  var retaining: MQTTPublication?
  /// Messages whose retained copies aren't kept yet, by their identifiers; with a token those that are in their topics' logs.
  var copies: [UInt16: MQTTToken?] = [:]

  /// Numbers for publications without a stream, which no stream has.
  private var lastNumber: UInt32 = 1 << 31

  /// Adds a publication that waits to be opened again. Returns its number until then.
  func wait(_ publication: MQTTPublication) -> UInt32 {
    lastNumber += 1
    byStream[lastNumber] = publication
    return lastNumber
  }

  /// The publication of a topic that is about to be closed, and isn't yet.
  func closing(_ topic: String) -> MQTTPublication? {
    byStream.values.first { publication in
      guard publication.isClosing, publication.topic == topic else { return false }
      if case .topic = publication.role { return true }
      return false
    }
  }

  /// The publication of a topic.
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

  /// Takes a topic's publication off its number.
  func remove(_ number: UInt16) -> MQTTPublication? {
    last = nil
    return publications.removeValue(forKey: number)
  }
}
