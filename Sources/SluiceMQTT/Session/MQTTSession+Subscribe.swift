import SluiceWire

/// A SUBSCRIBE whose filters the broker hasn't all answered.
struct PendingSubscribe: Sendable {
  var packetID: UInt16
  /// Nil where the answer is awaited.
  var reasons: [MQTTReason?]
  var numbers: [UInt16?]
  /// Whether retained messages are sent once the subscription stands.
  var sendsRetained: [Bool]
  /// Why the first filter was refused.
  var message: String?
}

extension MQTTSession {
  mutating func take(
    _ packet: MQTTSubscribe, _ output: inout [UInt8], _ perform: (MQTTAction) -> Void
  ) throws(MQTTError) {
    var pending = PendingSubscribe(packetID: packet.packetID, reasons: [], numbers: [], sendsRetained: [])
    var start: Subscribe.Start?
    var fault: MQTTError?
    for property in packet.properties.userProperties where property.name == StartPosition.name {
      do throws(MQTTError) {
        start = try StartPosition.parse(property.value)
      } catch {
        fault = error
      }
    }
    let identifier = packet.properties.number(.subscriptionIdentifier) ?? 0
    var requests: [MQTTSubscriptionRequest] = []
    for (index, item) in packet.items.enumerated() {
      do throws(MQTTError) {
        if let fault { throw fault }
        // No more can stand, and none is looked for.
        guard index < rules.maximumSubscriptions else { throw tooMany }
        let (number, request, isNew) = try add(item, identifier, start)
        pending.reasons.append(
          request == nil ? MQTTReason(rawValue: grantedQoS(item.options).rawValue) : nil)
        pending.numbers.append(number)
        let handling = item.options.retainHandling
        pending.sendsRetained.append(
          !item.filter.utf8.starts(with: "$share/".utf8) && rules.takesRetained
            && (handling == .send || handling == .sendIfNew && isNew))
        if let request { requests.append(request) }
      } catch {
        if error.reason == .protocolError { throw error }
        pending.reasons.append(
          error.reason.isAllowed(in: .suback, from: .server) ? error.reason : .implementationSpecific)
        pending.numbers.append(nil)
        pending.sendsRetained.append(false)
        pending.message = pending.message ?? error.message
      }
    }
    asked.append(pending)
    needsStore = true
    for request in requests { perform(.subscribe(request)) }
    answer(&output, perform)
  }

  private var tooMany: MQTTError {
    MQTTError(.quotaExceeded, "a session has at most \(rules.maximumSubscriptions) subscriptions")
  }

  private func grantedQoS(_ options: MQTTSubscriptionOptions) -> MQTTQoS {
    min(options.qos, rules.maximumQoS)
  }

  /// Puts a subscription into the table.
  ///
  /// - Returns: its number; what is asked of the broker, nothing where a subscription only has other options now; and whether there was none.
  private mutating func add(
    _ item: MQTTSubscribe.Item, _ identifier: UInt32, _ start: Subscribe.Start?
  ) throws(MQTTError) -> (UInt16, MQTTSubscriptionRequest?, isNew: Bool) {
    let filter = try MQTTTopicFilter(item.filter)
    if filter.group != nil {
      guard !item.options.noLocal else {
        throw .violation("a shared subscription can't leave out the client's own messages")
      }
      guard rules.takesShared else {
        throw MQTTError(.sharedSubscriptionsNotSupported, "shared subscriptions aren't served")
      }
    }
    let patterns = try filter.brokerPatterns()
    var options = item.options
    options.qos = grantedQoS(options)
    let subscription = MQTTSessionState.Subscription(
      filter: filter, options: options, identifier: identifier, start: start ?? .new, patterns: patterns)
    if let number = state.number(of: item.filter), let before = state.subscriptions[Int(number)] {
      state.set(Int(number), subscription)
      let isSame = (before.options.qos == .atMostOnce) == (options.qos == .atMostOnce) && start == nil
      // Without a place to begin at, what has been delivered isn't delivered again, and nothing between is lost.
      return (number, isSame ? nil : request(number, isResumed: start == nil), false)
    }
    let free = state.lowestFreeNumber()
    guard free < min(rules.maximumSubscriptions, Int(UInt16.max)) else {
      throw tooMany
    }
    state.set(free, subscription)
    return (UInt16(free), request(UInt16(free), isResumed: false), true)
  }

  /// What is asked of the broker for a subscription.
  func request(_ number: UInt16, isResumed: Bool) -> MQTTSubscriptionRequest? {
    guard let subscription = state.subscriptions[Int(number)] else { return nil }
    // Without cursors nothing is owed from the time away.
    let start = isResumed && !hasCursors(number) ? .new : subscription.start
    return MQTTSubscriptionRequest(
      number: number, patterns: subscription.patterns, group: subscription.filter.group,
      start: start, isUnlimited: subscription.options.qos == .atMostOnce, keepsCursors: hasCursors(number),
      isResumed: isResumed, underWay: state.inFlight.lastPlaces(of: number))
  }

  /// Whether a subscription leaves out the client's own messages.
  package var hasNoLocal: Bool { state.noLocalCount > 0 }

  /// The filter of a subscription; nil where there is none.
  package func filter(of number: UInt16) -> MQTTTopicFilter? {
    Int(number) < state.subscriptions.count ? state.subscriptions[Int(number)]?.filter : nil
  }

  /// The broker has answered a request for a subscription.
  ///
  /// - Parameter failure: why there is none; nil where it stands.
  package mutating func subscribed(
    _ number: UInt16, _ failure: MQTTError?, output: inout [UInt8], _ perform: (MQTTAction) -> Void
  ) {
    guard phase == .open else { return }
    let granted = state.delivery(number).options.qos
    for index in asked.indices {
      guard let place = asked[index].waiting(for: number) else { continue }
      if let failure {
        // What isn't a name for the broker, a group's too, is part of the filter.
        var reason = failure.reason == .topicNameInvalid ? .topicFilterInvalid : failure.reason
        if !reason.isAllowed(in: .suback, from: .server) { reason = .unspecified }
        asked[index].reasons[place] = reason
        asked[index].message = asked[index].message ?? failure.message
      } else {
        asked[index].reasons[place] = MQTTReason(rawValue: granted.rawValue)
      }
      break
    }
    if failure != nil, isSubscribed(number) {
      state.set(Int(number), nil)
      state.inFlight.detach(number)
      needsStore = true
    }
    answer(&output, perform)
  }

  /// Sends the SUBACKs that are complete, in the order of their SUBSCRIBEs.
  private mutating func answer(_ output: inout [UInt8], _ perform: (MQTTAction) -> Void) {
    while let pending = asked.first, !pending.reasons.contains(nil) {
      asked.removeFirst()
      let short = MQTTFilterAnswers(.suback, pending.packetID, pending.reasons.compactMap(\.self))
      if let message = pending.message, wantsProblems, version == .v5 {
        var long = short
        long.properties.append(.reasonString, message)
        send(.answers(long), or: .answers(short), &output)
      } else {
        send(.answers(short), &output)
      }
      for (index, number) in pending.numbers.enumerated() {
        guard let number, pending.sendsRetained[index], isSubscribed(number),
          pending.reasons[index]?.isFailure == false
        else { continue }
        perform(.sendRetained(number))
      }
    }
  }

  mutating func take(
    _ packet: MQTTUnsubscribe, _ output: inout [UInt8], _ perform: (MQTTAction) -> Void
  ) {
    var reasons: [MQTTReason] = []
    for (index, filter) in packet.filters.enumerated() {
      guard index < rules.maximumSubscriptions else {
        reasons.append(.implementationSpecific)
        continue
      }
      guard let number = state.number(of: filter) else {
        reasons.append((try? MQTTTopicFilter(filter)) == nil ? .topicFilterInvalid : .noSubscriptionExisted)
        continue
      }
      state.set(Int(number), nil)
      state.inFlight.detach(number)
      for index in asked.indices {
        if let place = asked[index].waiting(for: number) { asked[index].reasons[place] = .success }
      }
      perform(.unsubscribe(number))
      reasons.append(.success)
      needsStore = true
    }
    answer(&output, perform)
    send(.answers(MQTTFilterAnswers(.unsuback, packet.packetID, reasons)), &output)
  }
}

extension PendingSubscribe {
  /// Where the answer about a subscription belongs; nil where none is awaited.
  func waiting(for number: UInt16) -> Int? {
    reasons.indices.first { reasons[$0] == nil && numbers[$0] == number }
  }
}
