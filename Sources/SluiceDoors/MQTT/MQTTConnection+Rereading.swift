import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

// Reads retained messages, and records that must be sent again.
extension MQTTConnection {
  func sendRetained(_ number: UInt16) {
    if part != nil { return askForRetained(number) }
    guard let subscription = subscriptions[number], let filter = session.filter(of: number) else { return }
    let granted = subscription.initialDemand
    guard opensStreams, let stream = native.openSubscription(granted: granted) else { return }
    addRetained(MQTTFeed(.retained(filter), number: number, stream: stream, granted: granted))
    // The keys are the broker's names, so the condition is a prefix: the tokens before the first wildcard.
    var conditions: [RecordFilter.Condition] = []
    if let pattern = patterns(of: number).last {
      let literal = pattern.split(separator: ".").prefix { $0 != "*" && $0 != ">" }.joined(separator: ".")
      let test: RecordFilter.Test =
        filter.hasWildcards ? .hasPrefix(Array(literal.utf8)) : .equals(Array(pattern.utf8))
      if !literal.isEmpty { conditions = [RecordFilter.Condition(.key, test)] }
    }
    link.send(
      Subscribe(
        topic: Self.retainedTopic, start: .earliest, ifMissing: .fail, grantedThrough: granted,
        filter: RecordFilter(conditions)), stream: stream)
  }

  /// Reads a message that was sent before. Reads run one after the other, since messages are sent again in their original order (MQTT-4.6.0-1).
  func fetchInTurn(_ packetID: UInt16, _ place: MQTTPlace) {
    fetches.append((packetID, place))
    if fetches.count == 1 { fetch(packetID, place) }
  }

  func fetch(_ packetID: UInt16, _ place: MQTTPlace) {
    guard opensStreams, let known = topics[place.topic], let stream = native.openSubscription(granted: 1)
    else {
      return fetched(packetID, nil)
    }
    insert(MQTTFeed(.fetch(packetID, place), number: 0, stream: stream, granted: Credit.unlimited))
    link.send(
      Subscribe(
        topic: known.name, start: .offset(place.offset), ifMissing: .fail, epoch: known.epoch,
        grantedThrough: 1), stream: stream)
  }

  func fetched(_ packetID: UInt16, _ record: MQTTRecord?) {
    session.fetched(packetID, record, time: loop.wallClock, output: &output)
    guard !fetches.isEmpty else { return }
    fetches.removeFirst()
    guard let next = fetches.first else { return }
    later.append(.fetchNext(next.packetID, next.place))
    runLater()
  }
}
