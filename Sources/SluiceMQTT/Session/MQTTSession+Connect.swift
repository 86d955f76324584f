import SluiceWire

/// The broker's answer to a CONNECT that it accepts.
package struct MQTTAdmission: Hashable, Sendable {
  /// The client's identifier: its own, or one that the broker has assigned.
  package var clientID: String
  /// The state that an earlier connection has left; nil for none.
  package var state: [UInt8]?

  package init(clientID: String, state: [UInt8]? = nil) {
    self.clientID = clientID
    self.state = state
  }
}

extension MQTTSession {
  /// Handles the first packet, which is CONNECT.
  mutating func open(
    _ header: MQTTHeader, _ body: UnsafeRawBufferPointer, _ output: inout [UInt8],
    _ perform: (MQTTAction) -> Void
  ) {
    do throws(MQTTError) {
      var connect = try unsafe MQTTConnect(header, body)
      try adopt(&connect)
      phase = .connecting
      perform(.connect(connect))
    } catch {
      if error.reason == .unsupportedVersion {
        unsafe output += MQTTConnect.refusal(ofVersionIn: body)
        return end(nil, error.reason, error.message, perform)
      }
      // A CONNECT of MQTT 3.1.1 that can't be read is answered by closing the connection; only a refused one gets a return code.
      version = unsafe MQTTConnect.version(in: body) ?? .v311
      if version == .v5 || error.reason == .clientIdentifierNotValid {
        refuse(error.reason, error.message, &output)
      }
      end(nil, error.reason, error.message, perform)
    }
  }

  /// Applies the contents of CONNECT.
  private mutating func adopt(_ connect: inout MQTTConnect) throws(MQTTError) {
    version = connect.version
    let properties = connect.properties
    if let maximum = properties.number(.maximumPacketSize) { clientMaximumPacket = maximum }
    wantsProblems = properties.number(.requestProblemInformation) != 0
    wantsResponseInformation = properties.number(.requestResponseInformation) == 1
    guard properties.string(.authenticationMethod) == nil else {
      throw MQTTError(
        .badAuthenticationMethod,
        "enhanced authentication isn't served; use a user name and a password, a token as password, or a certificate"
      )
    }
    guard !connect.clientID.isEmpty || connect.cleanStart || version == .v5 else {
      throw MQTTError(.clientIdentifierNotValid, "a session that is kept needs a client identifier")
    }
    guard connect.clientID.utf8.count <= rules.maximumClientID else {
      throw MQTTError(
        .clientIdentifierNotValid, "the client identifier is longer than \(rules.maximumClientID) bytes")
    }
    if let will = connect.will {
      guard will.qos <= rules.maximumQoS else {
        throw MQTTError(.qosNotSupported, "the will's QoS isn't served")
      }
      guard !will.isRetained || rules.takesRetained else {
        throw MQTTError(.retainNotSupported, "retained messages aren't served")
      }
      do {
        _ = try MQTTSystemTopic.publishedName(will.topic)
      } catch {
        guard version == .v311 else { throw error }
        // MQTT 3.1.1 has no return code for that: the client is served without its will.
        connect.will = nil
        unnamedWill = UnnamedWill(topic: will.topic, reason: error.message)
      }
    }
    clientID = connect.clientID
    isBridge = connect.isBridge
    isClean = connect.cleanStart
    will = connect.will
    askedExpiry = connect.sessionExpiry
    expiry = min(askedExpiry, rules.maximumSessionExpiry)
    keepAlive = connect.keepAlive
    if rules.maximumKeepAlive > 0, keepAlive == 0 || keepAlive > rules.maximumKeepAlive, version == .v5 {
      keepAlive = rules.maximumKeepAlive
    }
    clientReceiveMaximum = UInt16(clamping: properties.number(.receiveMaximum) ?? 65535)
    clientAliases = OutboundAliases(
      maximum: min(UInt16(properties.number(.topicAliasMaximum) ?? 0), rules.outboundAliases))
    askedKeepAlive = connect.keepAlive
  }

  /// Accepts the client: sends CONNACK and resumes the session that an earlier connection has left.
  ///
  /// - Parameter now: the time from which the client's silence is measured.
  package mutating func connected(
    _ admission: MQTTAdmission, now: UInt64, output: inout [UInt8], _ perform: (MQTTAction) -> Void
  ) {
    guard phase == .connecting else { return }
    phase = .open
    lastReceived = now
    let isAssigned = clientID.isEmpty
    clientID = admission.clientID
    let kept = isClean ? nil : admission.state.flatMap { try? MQTTSessionState(decoding: $0) }
    if let will = unnamedWill.take() { perform(.unnamed(topic: will.topic, reason: will.reason)) }
    if admission.state != nil, kept == nil { perform(.forget) }
    if let kept { state = kept }
    wasAway = kept != nil
    let answer = MQTTPacket.connack(connack(isSessionPresent: kept != nil, isAssigned: isAssigned))
    guard send(answer, &output) else {
      // The client can't be sent CONNACK.
      will = nil
      return leave(
        .packetTooLarge, "CONNACK is longer than the client's Maximum Packet Size of \(clientMaximumPacket)",
        perform)
    }
    guard kept != nil else { return }
    if state.noLocalCount > 0 { perform(.tellOwn) }
    resume(&output, perform)
  }

  /// Refuses the client before CONNACK was sent. A CONNACK in the output of ``connected(_:now:output:_:)`` must then not be sent.
  package mutating func refused(
    _ reason: MQTTReason, _ message: String, output: inout [UInt8], _ perform: (MQTTAction) -> Void
  ) {
    guard phase == .connecting || phase == .open else { return }
    refuse(reason, message, &output)
    end(nil, reason, message, perform)
  }

  private mutating func refuse(_ reason: MQTTReason, _ message: String, _ output: inout [UInt8]) {
    let told = reason.isAllowed(in: .connack, from: .server) ? reason : .unspecified
    var properties = MQTTProperties()
    properties.append(.reasonString, message)
    send(.connack(MQTTConnack(told, properties: properties)), or: .connack(MQTTConnack(told)), &output)
  }

  private func connack(isSessionPresent: Bool, isAssigned: Bool) -> MQTTConnack {
    var properties = MQTTProperties()
    if expiry != askedExpiry { properties.append(.sessionExpiry, expiry) }
    if rules.receiveMaximum < .max { properties.append(.receiveMaximum, UInt32(rules.receiveMaximum)) }
    if rules.maximumQoS < .exactlyOnce { properties.append(.maximumQoS, UInt32(rules.maximumQoS.rawValue)) }
    if !rules.takesRetained { properties.append(.retainAvailable, 0) }
    properties.append(.maximumPacketSize, rules.maximumPacket)
    if isAssigned { properties.append(.assignedClientIdentifier, clientID) }
    if rules.topicAliasMaximum > 0 { properties.append(.topicAliasMaximum, UInt32(rules.topicAliasMaximum)) }
    if !rules.takesShared { properties.append(.sharedSubscriptionAvailable, 0) }
    if keepAlive != askedKeepAlive { properties.append(.serverKeepAlive, UInt32(keepAlive)) }
    if wantsResponseInformation, let topic = rules.responseTopic {
      properties.append(.responseInformation, topic)
    }
    return MQTTConnack(.success, isSessionPresent: isSessionPresent, properties: properties)
  }

  /// Resumes a session: messages in flight are sent again in their order, before any new ones.
  private mutating func resume(_ output: inout [UInt8], _ perform: (MQTTAction) -> Void) {
    for packetID in state.releasing {
      send(.acknowledgement(MQTTAcknowledgement(.pubrel, packetID)), &output)
    }
    let unsettled = state.inFlight.unsettled
    fetching = unsettled.map(\.packetID)
    for index in state.subscriptions.indices {
      guard let request = request(UInt16(index), isResumed: true) else { continue }
      perform(.subscribe(request))
    }
    for entry in unsettled { perform(.fetch(entry.packetID, entry.place)) }
  }
}
