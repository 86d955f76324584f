import SluiceMQTT

/// Subscriptions of one connection to $SYS topics.
final class MQTTSystemReading {
  struct Place {
    var filter: MQTTTopicFilter
    /// The revision that was sent last; nil if the next one is the first.
    var revision: UInt64?
    /// Whether the next values are those from before the subscription.
    var sendsPresent: Bool
  }

  /// By the session's numbers.
  var places: [UInt16: Place] = [:]
}

// Sends $SYS values to a client, and counts the client's traffic for them.
extension MQTTConnection {
  /// Begins to send the values of a subscription.
  ///
  /// - Parameter sendsPresent: whether to send the current values, as retained messages are sent.
  func follow(_ number: UInt16, sendsPresent: Bool) {
    guard phase == .open, let filter = session.filter(of: number), filter.selectsSystemTopics else { return }
    let reading = system ?? MQTTSystemReading()
    guard sendsPresent || reading.places[number]?.filter != filter else { return }
    reading.places[number] = MQTTSystemReading.Place(
      filter: filter, revision: sendsPresent ? 0 : nil, sendsPresent: sendsPresent)
    system = reading
    hub.system.follow(handle)
  }

  /// Sends changed values to the client.
  ///
  /// - Returns: whether it needs later changes.
  func take(_ values: MQTTSystemValues) -> Bool {
    guard phase == .open, let system else { return false }
    for (number, var place) in system.places {
      guard session.filter(of: number) == place.filter else {
        system.places[number] = nil
        continue
      }
      // A client that doesn't read gets the newest values once it reads.
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

  /// Adds the client's traffic since the last call to the loop's counters.
  func countTraffic() {
    let traffic = handle.shared.traffic
    traffic.add(session.takePackets())
    let count = phase == .open ? session.subscriptionCount : MQTTSubscriptionCount()
    guard count != counted else { return }
    traffic.replace(counted, by: count)
    counted = count
  }
}
