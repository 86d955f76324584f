// Messages from the client.

extension MQTTSession {
  mutating func take(
    _ publish: MQTTPublish, _ perform: (MQTTAction) -> Void, _ output: inout [UInt8]
  ) throws(MQTTError) {
    packets.publishesReceived &+= 1
    guard publish.qos <= rules.maximumQoS else {
      throw MQTTError(.qosNotSupported, "QoS \(publish.qos.rawValue) isn't served")
    }
    guard !publish.isRetained || rules.takesRetained else {
      throw MQTTError(.retainNotSupported, "retained messages aren't served")
    }
    let alias = publish.properties.number(.topicAlias)
    guard let alias = alias.map({ UInt16($0) }) else {
      return try unsafe take(publish, on: publish.topic, perform, &output)
    }
    if unsafe publish.topic.isEmpty {
      let topic = try aliases.topic(alias)
      try unsafe topic.withUnsafeBufferPointer { topic throws(MQTTError) in
        try unsafe take(publish, on: UnsafeRawBufferPointer(topic), perform, &output)
      }
    } else {
      try unsafe aliases.set(alias, publish.topic)
      try unsafe take(publish, on: publish.topic, perform, &output)
    }
  }

  private mutating func take(
    _ publish: MQTTPublish, on topic: UnsafeRawBufferPointer, _ perform: (MQTTAction) -> Void,
    _ output: inout [UInt8]
  ) throws(MQTTError) {
    var sequence: UInt64?
    if publish.qos == .exactlyOnce {
      if let index = state.received.firstIndex(where: { $0.packetID == publish.packetID }) {
        // The client sends the message again: it is in the log or being appended, or the broker has restarted since.
        let message = state.received[index]
        if message.isAcknowledged { return acknowledge(.pubrec, publish.packetID, &output) }
        if message.isUnderWay { return }
        state.received[index].isUnderWay = true
        sequence = message.sequence
      } else {
        try admit()
        sequence = state.nextSequence
      }
    } else if publish.qos == .atLeastOnce {
      guard !appending.contains(publish.packetID) else { return }
      try admit()
    }
    let number: UInt16
    do throws(MQTTError) {
      number = try unsafe publication(topic, perform)
    } catch {
      state.received.removeAll { $0.packetID == publish.packetID && !$0.isAcknowledged }
      perform(.unnamed(topic: unsafe String(decoding: topic, as: UTF8.self), reason: error.message))
      return answer(publish, error, &output)
    }
    if publish.qos == .atLeastOnce { appending.append(publish.packetID) }
    if let sequence, sequence == state.nextSequence {
      state.nextSequence += 1
      state.received.append(
        MQTTSessionState.Received(
          packetID: publish.packetID, sequence: sequence, isAcknowledged: false, isUnderWay: true))
    }
    if publish.isRetained {
      let name = unsafe String(decoding: topic, as: UTF8.self)
      if let name = try? MQTTTopicName.brokerName(name) { perform(.retain(publish, topic: name)) }
    }
    perform(.publish(publish, publication: number, sequence: sequence))
  }

  /// Admits one more message at QoS 1 or 2.
  @inline(__always)
  private func admit() throws(MQTTError) {
    guard appending.count + state.received.count < Int(rules.receiveMaximum) else {
      throw MQTTError(
        .receiveMaximumExceeded,
        "more than \(rules.receiveMaximum) messages at QoS 1 and 2 are under way; wait for their acknowledgements"
      )
    }
  }

  private mutating func publication(
    _ topic: UnsafeRawBufferPointer, _ perform: (MQTTAction) -> Void
  ) throws(MQTTError) -> UInt16 {
    if let number = unsafe publications.number(of: topic) { return number }
    let name = try unsafe MQTTSystemTopic.publishedName(String(decoding: topic, as: UTF8.self))
    let (number, isReused) = unsafe publications.insert(topic)
    if isReused { perform(.closePublication(number)) }
    perform(.openPublication(number, topic: name))
    return number
  }

  /// Answers a message whose topic the broker can't name. MQTT 3.1.1 has no error code for that, and a client without an answer would send the message again
  /// forever, so the message is acknowledged.
  private mutating func answer(_ publish: MQTTPublish, _ error: MQTTError, _ output: inout [UInt8]) {
    guard publish.qos > .atMostOnce else { return }
    let type: MQTTPacketType = publish.qos == .atLeastOnce ? .puback : .pubrec
    acknowledge(type, publish.packetID, &output, version == .v5 ? error : nil)
  }

  /// Handles the result of appending a message at QoS 1 or 2.
  ///
  /// - Parameter failure: why it isn't in the log; nil if it is.
  package mutating func appended(
    _ packetID: UInt16, _ failure: MQTTError?, output: inout [UInt8], _ perform: (MQTTAction) -> Void
  ) {
    guard phase == .open else { return }
    var type = MQTTPacketType.puback
    if let index = appending.firstIndex(of: packetID) {
      appending.remove(at: index)
    } else if let index = state.received.firstIndex(where: { $0.packetID == packetID && $0.isUnderWay }) {
      type = .pubrec
      if failure == nil {
        state.received[index].isUnderWay = false
        state.received[index].isAcknowledged = true
      } else {
        state.received.remove(at: index)
      }
      needsStore = true
    } else {
      return
    }
    if let failure, version == .v311 { return fail(failure, &output, perform) }
    acknowledge(type, packetID, &output, failure)
  }

  /// Removes a publication that has ended with its topic or its permission: the next message opens another one.
  package mutating func publicationEnded(_ number: UInt16) { publications.remove(number) }

  private mutating func acknowledge(
    _ type: MQTTPacketType, _ packetID: UInt16, _ output: inout [UInt8], _ failure: MQTTError? = nil
  ) {
    let reason =
      failure.map { $0.reason.isAllowed(in: type, from: .server) ? $0.reason : .implementationSpecific }
    let short = MQTTAcknowledgement(type, packetID, reason ?? .success)
    guard let failure, wantsProblems, version == .v5 else {
      send(.acknowledgement(short), &output)
      return
    }
    var long = short
    long.properties.append(.reasonString, failure.message)
    send(.acknowledgement(long), or: .acknowledgement(short), &output)
  }

  // MARK: Acknowledgements

  mutating func take(_ packet: MQTTAcknowledgement, _ output: inout [UInt8]) throws(MQTTError) {
    let packetID = packet.packetID
    switch packet.type {
    case .puback: try settle(packet, .atLeastOnce)
    case .pubrec:
      if state.releasing.contains(packetID) { return respond(.pubrel, packetID, true, &output) }
      let isThere = try settle(packet, .exactlyOnce)
      guard !packet.reason.isFailure else { return }
      if isThere {
        state.releasing.append(packetID)
        needsStore = true
      }
      respond(.pubrel, packetID, isThere, &output)
    case .pubrel:
      let index = state.received.firstIndex { $0.packetID == packetID }
      if let index { state.received.remove(at: index) }
      if index != nil { needsStore = true }
      respond(.pubcomp, packetID, index != nil, &output)
    default:
      if let index = state.releasing.firstIndex(of: packetID) {
        state.releasing.remove(at: index)
        needsStore = true
      }
    }
  }

  /// Returns whether the message was in flight.
  @discardableResult
  private mutating func settle(_ packet: MQTTAcknowledgement, _ qos: MQTTQoS) throws(MQTTError) -> Bool {
    guard let entry = state.inFlight.settle(packet.packetID) else { return false }
    guard entry.qos == qos else {
      throw .violation("\(packet.type) came for a message at QoS \(entry.qos.rawValue)")
    }
    // An acknowledged message isn't sent again.
    if !fetching.isEmpty { fetching.removeAll { $0 == packet.packetID } }
    if qos == .atLeastOnce, !entry.isRetained, isShared(entry.subscription) {
      settled.append((entry.subscription, entry.place))
    }
    return true
  }

  private mutating func respond(
    _ type: MQTTPacketType, _ packetID: UInt16, _ isThere: Bool, _ output: inout [UInt8]
  ) {
    let reason: MQTTReason = isThere || version == .v311 ? .success : .packetIdentifierNotFound
    send(.acknowledgement(MQTTAcknowledgement(type, packetID, reason)), &output)
  }
}
