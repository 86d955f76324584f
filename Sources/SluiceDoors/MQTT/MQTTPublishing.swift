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
