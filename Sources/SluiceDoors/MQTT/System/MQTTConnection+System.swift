import SluiceMQTT

/// Subscriptions of one connection to values of the broker.
final class MQTTSystemReading {
  struct Place {
    var filter: MQTTTopicFilter
    /// The revision that was sent last; nil if the next one is the first.
    var revision: UInt64?
    /// Whether the next values are those that there were before the subscription.
    var sendsPresent: Bool
  }

  /// By the session's numbers.
  var places: [UInt16: Place] = [:]
}

// Values of the broker for a client, and what the client counts for them.
extension MQTTConnection {
  /// A subscription stands.
  ///
  /// - Parameter sendsPresent: whether the client wants the values that there are, as it wants retained messages.
  func follow(_ number: UInt16, sendsPresent: Bool) {
    guard phase == .open, let filter = session.filter(of: number), filter.selectsSystemTopics else { return }
    let reading = system ?? MQTTSystemReading()
    guard sendsPresent || reading.places[number]?.filter != filter else { return }
    reading.places[number] = MQTTSystemReading.Place(
      filter: filter, revision: sendsPresent ? 0 : nil, sendsPresent: sendsPresent)
    system = reading
    hub.system.follow(handle)
  }

  /// Sends the client what has changed.
  ///
  /// - Returns: whether it wants later changes.
  func take(_ values: MQTTSystemValues) -> Bool {
    guard phase == .open, let system else { return false }
    for (number, var place) in system.places {
      guard session.filter(of: number) == place.filter else {
        system.places[number] = nil
        continue
      }
      // A client that doesn't read gets what is new then.
      guard unsent <= Self.maximumOutput else { continue }
      let last = place.revision ?? values.revision
      for value in values.values where value.revision > last {
        guard place.filter.matches(value.topic), mayRead(value.brokerName) else { continue }
        session.sendValue(value, on: number, isInitial: place.sendsPresent, output: &output)
      }
      (place.revision, place.sendsPresent) = (values.revision, false)
      system.places[number] = place
    }
    if system.places.isEmpty { self.system = nil }
    endTurn()
    return self.system != nil
  }

  /// Adds what has happened since the last call to the numbers of the loop.
  func countTraffic() {
    let traffic = handle.shared.traffic
    traffic.add(session.takePackets())
    let count = phase == .open ? session.subscriptionCount : MQTTSubscriptionCount()
    guard count != counted else { return }
    traffic.replace(counted, by: count)
    counted = count
  }
}
