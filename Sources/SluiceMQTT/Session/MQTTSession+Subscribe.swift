import SluiceWire

/// A SUBSCRIBE with filters that the broker has yet to answer.
struct PendingSubscribe: Sendable {
  var packetID: UInt16
  /// Nil while the answer is pending.
  private(set) var reasons: [MQTTReason?] = []
  private(set) var numbers: [UInt16?] = []
  /// For each filter, the reason that the client gets if the subscription is accepted.
  private(set) var granted: [MQTTReason] = []
  /// The indices of filters with pending answers, by subscription number: a SUBSCRIBE may contain a filter several times.
  private var awaited: [UInt16: [Int]] = [:]
  /// Whether retained messages are sent once the subscription is accepted.
  private(set) var sendsRetained: [Bool] = []
  /// Nil if no filter was refused.
  private(set) var refused: MQTTRefusedFilters?

  init(packetID: UInt16) {
    self.packetID = packetID
  }
}

extension MQTTSession {
  mutating func take(
    _ packet: MQTTSubscribe, _ output: inout [UInt8], _ perform: (MQTTAction) -> Void
  ) throws(MQTTError) {
    var pending = PendingSubscribe(packetID: packet.packetID)
    var start: Subscribe.Start?
    var fault: MQTTError?
    for property in packet.properties.userProperties where property.name == StartPosition.name {
      do throws(MQTTError) {
        guard start == nil, fault == nil else { throw StartPosition.repeated }
        start = try StartPosition.parse(property.value)
      } catch {
        fault = error
      }
    }
    let identifier = packet.properties.number(.subscriptionIdentifier) ?? 0
    var requests: [MQTTSubscriptionRequest] = []
    for (index, item) in packet.items.enumerated() {
      var item = item
      // MQTT 3.1.1 lacks the options that a bridge needs: messages don't return to the broker from which they came, and keep their retain flags.
      if isBridge, !item.filter.utf8.starts(with: "$share/".utf8) {
        (item.options.noLocal, item.options.retainAsPublished) = (true, true)
      }
      do throws(MQTTError) {
        if let fault { throw fault }
        // The session can't have more subscriptions, so no free number is searched for.
        guard index < rules.maximumSubscriptions else { throw tooMany }
        let (number, request, isNew) = try add(item, identifier, start, pending)
        // Performed at once, because PUBLISH may follow in the same bytes.
        if item.options.noLocal { perform(.tellOwn) }
        let handling = item.options.retainHandling
        pending.add(
          number, granted: MQTTReason(rawValue: grantedQoS(item.options).rawValue),
          sendsRetained: !item.filter.utf8.starts(with: "$share/".utf8) && rules.takesRetained
            && (handling == .send || handling == .sendIfNew && isNew))
        if let request { requests.append(request) }
      } catch {
        if error.reason == .protocolError { throw error }
        let reason =
          error.reason.isAllowed(in: .suback, from: .server) ? error.reason : .implementationSpecific
        pending.add(refusing: reason)
        pending.refuse(item.filter, reason, error.message)
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

  /// Adds a subscription to the table.
  ///
  /// - Parameter pending: the SUBSCRIBE to which it belongs.
  /// - Returns: its number; the request to the broker, nil if an equal one is pending; and whether the subscription is new.
  private mutating func add(
    _ item: MQTTSubscribe.Item, _ identifier: UInt32, _ start: Subscribe.Start?, _ pending: PendingSubscribe
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
    _ = try filter.brokerPatterns()
    var options = item.options
    options.qos = grantedQoS(options)
    let subscription = MQTTSessionState.Subscription(
      filter: filter, options: options, identifier: identifier, start: start ?? .new)
    if let number = state.number(of: item.filter), let before = state.subscriptions[Int(number)] {
      state.set(Int(number), subscription)
      let isSame = (before.options.qos == .atMostOnce) == (options.qos == .atMostOnce) && start == nil
      let isAwaited = isSame && (pending.awaits(number) || asked.contains { $0.awaits(number) })
      // Without a start position, delivered records aren't delivered again, and none in between is lost.
      return (number, isAwaited ? nil : request(number, isResumed: start == nil), false)
    }
    let free = state.lowestFreeNumber()
    guard free < min(rules.maximumSubscriptions, Int(UInt16.max)) else {
      throw tooMany
    }
    state.set(free, subscription)
    return (UInt16(free), request(UInt16(free), isResumed: false), true)
  }

  /// The request to the broker for a subscription.
  func request(_ number: UInt16, isResumed: Bool) -> MQTTSubscriptionRequest? {
    guard let subscription = state.subscriptions[Int(number)] else { return nil }
    // Without cursors, the records of the time away aren't delivered.
    let start = isResumed && !hasCursors(number) ? .new : subscription.start
    return MQTTSubscriptionRequest(
      number: number, patterns: subscription.patterns, group: subscription.filter.group,
      start: start, isUnlimited: subscription.options.qos == .atMostOnce, keepsCursors: hasCursors(number),
      isResumed: isResumed, underWay: state.inFlight.lastPlaces(of: number))
  }

  /// The filter of a subscription; nil if there is none.
  package func filter(of number: UInt16) -> MQTTTopicFilter? {
    Int(number) < state.subscriptions.count ? state.subscriptions[Int(number)]?.filter : nil
  }

  /// Handles the broker's answer to a request for a subscription.
  ///
  /// - Parameters:
  ///   - failure: why it was refused; nil if it was accepted.
  ///   - isKept: whether it stays a subscription of the session even so, and the broker continues trying to open it.
  package mutating func subscribed(
    _ number: UInt16, _ failure: MQTTError?, isKept: Bool = false, output: inout [UInt8],
    _ perform: (MQTTAction) -> Void
  ) {
    guard phase == .open else { return }
    // The client may have requested it several times before the answer: the answer to the last request applies to all.
    for index in asked.indices {
      for place in asked[index].takePlaces(of: number) {
        guard let failure else {
          asked[index].grant(place)
          continue
        }
        // A name that is invalid for the broker, including a group's, is part of the filter.
        var reason = failure.reason == .topicNameInvalid ? .topicFilterInvalid : failure.reason
        if !reason.isAllowed(in: .suback, from: .server) { reason = .unspecified }
        asked[index].answer(place, reason)
        asked[index].refuse(filter(of: number)?.description ?? "", reason, failure.message)
      }
    }
    if failure != nil, !isKept, isSubscribed(number) {
      state.set(Int(number), nil)
      state.inFlight.detach(number)
      needsStore = true
    }
    answer(&output, perform)
  }

  /// Sends the SUBACKs that are complete, in the order of their SUBSCRIBEs.
  private mutating func answer(_ output: inout [UInt8], _ perform: (MQTTAction) -> Void) {
    while let pending = asked.first, pending.isComplete {
      asked.removeFirst()
      // Releases the array's memory, since most clients have no pending requests.
      if asked.isEmpty { asked = [] }
      let short = MQTTFilterAnswers(.suback, pending.packetID, pending.reasons.compactMap(\.self))
      if let refused = pending.refused { perform(.refused(refused)) }
      if let refused = pending.refused, wantsProblems, version == .v5 {
        var long = short
        long.properties.append(.reasonString, refused.message)
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
        for place in asked[index].takePlaces(of: number) { asked[index].answer(place, .success) }
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
  /// Adds a filter whose answer is pending.
  ///
  /// - Parameters:
  ///   - number: the number of the subscription.
  ///   - granted: the reason that the client gets if the subscription is accepted.
  mutating func add(_ number: UInt16, granted: MQTTReason, sendsRetained: Bool) {
    awaited[number, default: []].append(reasons.count)
    reasons.append(nil)
    numbers.append(number)
    self.granted.append(granted)
    self.sendsRetained.append(sendsRetained)
  }

  /// Adds a filter without a subscription.
  mutating func add(refusing reason: MQTTReason) {
    reasons.append(reason)
    numbers.append(nil)
    granted.append(reason)
    sendsRetained.append(false)
  }

  /// Whether all filters are answered.
  var isComplete: Bool { awaited.isEmpty }

  /// Whether an answer for a subscription is pending.
  func awaits(_ number: UInt16) -> Bool { awaited[number] != nil }

  /// Removes the indices of the filters to which the answer for a subscription belongs.
  mutating func takePlaces(of number: UInt16) -> [Int] { awaited.removeValue(forKey: number) ?? [] }

  /// Notes that a filter is refused.
  mutating func refuse(_ filter: String, _ reason: MQTTReason, _ message: String) {
    if refused == nil {
      refused = MQTTRefusedFilters(count: 1, filter: filter, reason: reason, message: message)
    } else {
      refused?.count += 1
    }
  }

  /// Accepts the subscription of a filter.
  mutating func grant(_ place: Int) { answer(place, granted[place]) }

  mutating func answer(_ place: Int, _ reason: MQTTReason) { reasons[place] = reason }
}
