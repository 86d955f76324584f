// Messages for the client.

extension MQTTSession {
  /// The number of records that may be requested now.
  ///
  /// Inlined, like other functions of the message path: calling a function that doesn't modify the session copies it while it is being modified, which takes
  /// 64 instructions.
  @inline(__always)
  var demand: Int {
    guard fetching.isEmpty, state.acknowledgedCount > 0 else { return 0 }
    let limit = min(isLasting ? rules.lastingWindow : rules.window, Int(clientReceiveMaximum), 16_384)
    let used = state.inFlight.count + state.releasing.count + requested
    return max(0, min(limit - used, 2 * limit - state.inFlight.span - requested))
  }

  /// Delivers a record on a subscription.
  ///
  /// - Parameter time: now, in milliseconds since 1970.
  package mutating func deliver(
    _ record: MQTTRecord, on number: UInt16, time: Int64, output: inout [UInt8]
  ) {
    let delivery = state.delivery(number)
    guard phase == .open, delivery.isSubscribed else { return }
    let options = delivery.options
    if options.qos > .atMostOnce, requested > 0 { requested -= 1 }
    guard !options.noLocal || !record.isOwn || record.isRetained else { return pass(record, number) }
    properties.removeAll()
    let parts = record.parts(&properties, version)
    let qos = min(options.qos, parts.flags.qos, rules.maximumQoS)
    let isRetained = record.isRetained || options.retainAsPublished && parts.flags.isRetained
    guard qos > .atMostOnce else {
      encode(
        record, parts, number, 0, isRetained: isRetained, isDuplicate: false, qos, time, &output)
      return pass(record, number)
    }
    let packetID = nextPacketID()
    guard
      encode(
        record, parts, number, packetID, isRetained: isRetained, isDuplicate: false, qos, time, &output)
    else { return pass(record, number) }
    state.lastPacketID = packetID
    state.inFlight.append(
      InFlightTable.Entry(
        packetID: packetID, subscription: number, qos: qos, isRetained: record.isRetained,
        hasCursor: !record.isRetained && !isShared(number), isSettled: false, place: record.place))
    guard qos == .exactlyOnce else { return }
    needsStore = true
    // The record now belongs to this client: no other member of the group gets it.
    if isShared(number), !record.isRetained { settled.append((number, record.place)) }
  }

  /// Handles a record that the broker has read again; nil if it no longer exists.
  package mutating func fetched(
    _ packetID: UInt16, _ record: MQTTRecord?, time: Int64, output: inout [UInt8]
  ) {
    guard phase == .open, let index = fetching.firstIndex(of: packetID) else { return }
    fetching.remove(at: index)
    guard let entry = state.inFlight.unsettled.first(where: { $0.packetID == packetID }) else { return }
    guard let record else { return drop(entry, &output) }
    let number = entry.subscription
    let isAsPublished = state.delivery(number).options.retainAsPublished
    properties.removeAll()
    let parts = record.parts(&properties, version)
    let isRetained =
      entry.isRetained || isAsPublished && parts.flags.isRetained
    if !encode(
      record, parts, number, packetID, isRetained: isRetained, isDuplicate: true, entry.qos, time,
      &output)
    {
      drop(entry, &output)
    }
  }

  /// Gives up a message that was sent and can't be sent again. At QoS 2 the client keeps its identifier until it is released.
  private mutating func drop(_ entry: InFlightTable.Entry, _ output: inout [UInt8]) {
    _ = state.inFlight.settle(entry.packetID)
    needsStore = true
    guard entry.qos == .exactlyOnce else { return }
    state.releasing.append(entry.packetID)
    send(.acknowledgement(MQTTAcknowledgement(.pubrel, entry.packetID)), &output)
  }

  /// Reports the end of a subscription's topic, behind its last record: the client gets a message without a payload whose user properties describe the end.
  ///
  /// - Parameters:
  ///   - topic: the topic's name in MQTT.
  ///   - failure: the code and the message of a topic that has failed; nil for one that has completed.
  package mutating func topicEnded(
    _ topic: String, on number: UInt16, failure: (code: UInt32, message: String)?, output: inout [UInt8]
  ) {
    // A client of MQTT 3.1.1 gets no properties, so it couldn't distinguish this message from others.
    guard phase == .open, version == .v5, isSubscribed(number) else { return }
    properties.removeAll()
    properties.append(user: "sluice-ended", failure == nil ? "finished" : "failure")
    if let failure {
      properties.append(user: "sluice-code", "\(failure.code)")
      properties.append(user: "sluice-message", failure.message)
    }
    let identifier = state.delivery(number).identifier
    if identifier > 0 { properties.append(.subscriptionIdentifier, identifier) }
    sendOwn(topic, [], isRetained: false, &output)
  }

  /// Whether the broker has durable cursors for the subscription.
  func hasCursors(_ number: UInt16) -> Bool {
    let delivery = state.delivery(number)
    return (isLasting || wasAway) && !delivery.isShared && delivery.options.qos > .atMostOnce
  }

  /// Whether a group counts the records delivered on the subscription.
  func isShared(_ number: UInt16) -> Bool {
    state.delivery(number).isShared
  }

  /// Counts a record as delivered that isn't sent or needs no acknowledgement.
  private mutating func pass(_ record: MQTTRecord, _ number: UInt16) {
    guard !record.isRetained else { return }
    if isShared(number) { return settled.append((number, record.place)) }
    guard hasCursors(number) else { return }
    if state.inFlight.span == 0 {
      Self.add(number, record.place, to: &commits)
    } else {
      state.inFlight.pass(number, record.place)
    }
  }

  private mutating func nextPacketID() -> UInt16 {
    var candidate = state.lastPacketID == .max ? 1 : state.lastPacketID + 1
    if state.inFlight.count == 0 { hasLapped = false }
    if candidate == state.inFlight.oldestID { hasLapped = true }
    if hasLapped || !state.releasing.isEmpty {
      var used = Set(state.releasing)
      if hasLapped { used.formUnion(state.inFlight.unsettled.map(\.packetID)) }
      // The window is smaller than the number of identifiers.
      while used.contains(candidate) { candidate = candidate == .max ? 1 : candidate + 1 }
    }
    return candidate
  }

  /// Returns false, and sends nothing, for a message that has expired or is longer than the client accepts.
  @discardableResult
  private mutating func encode(
    _ record: MQTTRecord, _ parts: MQTTRecord.Parts, _ number: UInt16, _ packetID: UInt16, isRetained: Bool,
    isDuplicate: Bool, _ qos: MQTTQoS, _ time: Int64,
    _ output: inout [UInt8]
  ) -> Bool {
    if let expiry = parts.expiry {
      let left = Int64(expiry) - max(0, time - record.time) / 1000
      // A message that was sent before is sent again even after it has expired.
      guard left > 0 || isDuplicate else { return false }
      if version == .v5 { properties.append(.messageExpiry, UInt32(max(0, left))) }
    }
    let identifier = state.delivery(number).identifier
    if identifier > 0, version == .v5 { properties.append(.subscriptionIdentifier, identifier) }
    let alias = clientAliases.alias(of: record.place.topic)
    if let alias { properties.append(.topicAlias, UInt32(alias.alias)) }
    let none = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    let isSent = properties.withView { view in
      let packet = unsafe MQTTPublish(
        topic: alias?.isKnown == true ? none : record.topic, payload: parts.payload, qos: qos,
        packetID: packetID, isDuplicate: isDuplicate, isRetained: isRetained, properties: view)
      guard packet.size(version) <= min(Int(clientMaximumPacket), MQTTLength.largest) else { return false }
      packet.encode(into: &output, version)
      return true
    }
    if isSent {
      packets.sent &+= 1
      packets.publishesSent &+= 1
    }
    if isSent, let alias, !alias.isKnown { clientAliases.add(record.place.topic) }
    return isSent
  }
}
