// Values of `$SYS/broker/…`, and the session's counts for them.

extension MQTTSession {
  /// The packets since the last call.
  package mutating func takePackets() -> MQTTPacketCount {
    defer { packets = MQTTPacketCount() }
    return packets
  }

  /// The session's subscriptions.
  package var subscriptionCount: MQTTSubscriptionCount { state.count }

  /// Sends a value of the broker on a subscription, at QoS 0.
  ///
  /// - Parameter isInitial: whether it is the value that there was before the subscription.
  package mutating func sendValue(
    _ value: MQTTSystemValues.Value, on number: UInt16, isInitial: Bool, output: inout [UInt8]
  ) {
    let delivery = state.delivery(number)
    guard phase == .open, delivery.isSubscribed else { return }
    properties.removeAll()
    if delivery.identifier > 0, version == .v5 {
      properties.append(.subscriptionIdentifier, delivery.identifier)
    }
    sendOwn(
      value.topic, Array(value.text.utf8), isRetained: isInitial || delivery.options.retainAsPublished,
      &output)
  }

  /// Sends a message of the broker at QoS 0, with the properties that are gathered, unless it is longer than the client takes.
  mutating func sendOwn(_ topic: String, _ payload: [UInt8], isRetained: Bool, _ output: inout [UInt8]) {
    let size = output.count
    unsafe Array(topic.utf8).withUnsafeBytes { topic in
      unsafe payload.withUnsafeBytes { payload in
        properties.withView { view in
          let packet = unsafe MQTTPublish(
            topic: topic, payload: payload, isRetained: isRetained, properties: view)
          guard packet.size(version) <= clientMaximumPacket else { return }
          packet.encode(into: &output, version)
        }
      }
    }
    guard output.count > size else { return }
    packets.sent &+= 1
    packets.publishesSent &+= 1
  }
}
