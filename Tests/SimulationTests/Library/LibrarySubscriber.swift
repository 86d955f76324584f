import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceSimulation
import SluiceWire

/// A Combine subscriber of a remote topic that requests records as planned and checks every value.
final class LibrarySubscriber: Subscriber {
  private let plan: SubscriberPlan
  private let left: Int
  private unowned let peer: LibraryPeer
  /// Whether it receives marks, the events between records.
  private let hearsMarks: Bool
  private let start: SubscriptionPlan.Start
  private let prefetches: Bool
  /// The settings that it states for the topic.
  private var statement: TopicSettings?
  private var subscription: (any Subscription)?

  /// `UInt64.max` means unlimited.
  private var requested: UInt64 = 0
  private var received: UInt64 = 0
  private var isInside = false
  private var isOver = false
  private var isCancelled = false
  private var isLive = false
  private var next: UInt64?
  private var time: Int64 = .min
  private var life: TopicEpoch?
  /// Records without a name that arrived before the first record with one.
  private var early: [TopicRecord] = []
  private var isThinking = false
  private var hasLastRequest = false
  /// The head at the first value, or at the first value of a new epoch: it receives every record from there on, deletions included. Before that
  /// offset, the broker may have switched to the log anywhere.
  private var followed: UInt64?
  /// Whether it requests the number of producers.
  private var hearsProducers = false
  /// The last reported number of producers.
  private var producers: Int?

  init(_ plan: SubscriberPlan, left: Int, peer: LibraryPeer, client: Client) {
    self.plan = plan
    self.left = left
    self.peer = peer
    // Only marks report another epoch of the topic.
    hearsMarks = peer.random.oneIn(2) || peer.plan.persists && plan.lag == .skip
    start = SubscriptionPlan.Start(plan.start)
    peer.note("subscribes to \(plan.topic) from \(start)\(hearsMarks ? " with marks" : "")")
    prefetches = peer.random.oneIn(3)
    let prefetch =
      prefetches ? SubscriptionPlan.Prefetch.keepFull(peer.random.next(in: 1...30)) : .byRequest
    if let stated = peer.simulation.scenario.stated(of: plan.topic), peer.random.oneIn(2) {
      statement = stated
    }
    let topic = client.topic(
      plan.topic, settings: statement, from: start, where: plan.filter,
      lag: plan.lag == .fail ? .fail : .skip,
      prefetch: prefetch)
    if hearsMarks {
      hearsProducers = statement != nil
      topic.events(including: hearsProducers ? .producers : []).subscribe(self)
    } else {
      topic.map { TopicEvent<TopicRecord>.record($0) }.subscribe(self)
    }
  }

  private var oracle: Oracle { peer.oracle }

  /// The topic may keep only the newest record of each key.
  private var mayHaveGaps: Bool { peer.simulation.scenario.isKeyed }

  private func check(_ holds: Bool, _ what: @autoclosure () -> String) {
    if !holds { oracle.fail(peer.number, "\(title): \(what())") }
  }

  private var title: String { "library subscription to \(plan.topic) (\(start))" }

  // MARK: Subscriber

  func receive(subscription: any Subscription) {
    check(self.subscription == nil, "a second subscription")
    self.subscription = subscription
    ask(first: true)
    if plan.demand != .unlimited { think() }
    if plan.cancelOneIn > 0, peer.random.oneIn(plan.cancelOneIn) {
      later(within: .milliseconds(500)) { $0.cancel() }
    }
  }

  func receive(_ event: TopicEvent<TopicRecord>) -> Subscribers.Demand {
    hear("a value")
    isInside = true
    defer { isInside = false }
    received += 1
    followed = followed ?? oracle.head(of: plan.topic)
    check(received <= requested, "\(received) values where \(requested) were requested")
    switch event {
    case .record(let record): receive(record)
    case .live(let offset):
      check(!isLive, "live twice")
      if let next { check(follows(next, offset), "live at \(offset) instead of \(next)") }
      isLive = true
      next = offset
    case .lagged(let missed, let offset):
      check(missed > 0 && plan.lag == .skip, "lagged by \(missed)")
      // A notice that doesn't move the offset concerns deletions of a compacted topic.
      if let next {
        check(
          follows(next + missed, offset) || mayHaveGaps && offset == next,
          "lagged by \(missed) from \(next) to \(offset)")
      }
      checkGone(upTo: offset)
      next = offset
    case .restarted(let offset):
      check(
        peer.plan.persists && plan.lag == .skip && oracle.mayHaveRestarted(plan.topic), "started anew")
      next = offset
      time = .min
      life = nil
      early = []
      followed = oracle.head(of: plan.topic)
    case .rewound(let offset): check(false, "went back to \(offset), though nothing can be lost")
    case .producers(let count):
      check(hearsProducers && count != producers, "\(count) producers, after \(producers ?? 0)")
      producers = count
    case .topic(let name, _): check(false, "news of \(name), which isn't a pattern's")
    }
    return answer()
  }

  private func receive(_ record: TopicRecord) {
    oracle.chronicle.mix(record.offset)
    peer.note("hears \(plan.topic)@\(record.offset)")
    check(record.topic == plan.topic, "a record of \(record.topic)")
    check(
      plan.filter.wants(key: record.key, headers: record.headers.map { (Array($0.name.utf8), $0.value) }),
      "record \(record.offset), which isn't wanted")
    if let next, !follows(next, record.offset) {
      check(
        record.offset > next && (!hearsMarks && plan.lag == .skip || mayHaveGaps),
        "record \(record.offset) instead of \(next)")
      checkGone(upTo: record.offset)
    }
    next = record.offset + 1
    check(record.time.millisecondsSince1970 >= time, "a record older than the one before")
    time = record.time.millisecondsSince1970
    early.append(record)
    if life == nil { life = findLife(record) }
    guard let life else { return }
    for record in early { compare(record, in: life) }
    early = []
  }

  /// Whether `offset` may follow if `next` is expected. The peers that read frames check the records in between.
  private func follows(_ next: UInt64, _ offset: UInt64) -> Bool {
    offset == next || mayHaveGaps && offset >= next || !plan.filter.isEmpty && offset > next
  }

  /// The epoch of the topic, derived from the publication of the record.
  private func findLife(_ record: TopicRecord) -> TopicEpoch? {
    let payload = record.payload
    guard payload.count >= PublicationLedger.nameSize else { return nil }
    let number = payload.withUnsafeBytes { UInt32(littleEndian: $0.loadUnaligned(as: UInt32.self)) }
    guard let publication = oracle.publication(number) else {
      check(false, "record \(record.offset) names publication \(number), which doesn't exist")
      return nil
    }
    if publication.resumes {
      return oracle.onlyEpoch(of: plan.topic).map {
        oracle.life(of: plan.topic, epoch: $0, client: peer.number)
      }
    }
    // A publication of the library doesn't know the epoch either. If the topic has had only one, the present epoch is right.
    if publication.life == nil, let epoch = oracle.onlyEpoch(of: plan.topic) {
      publication.found(in: oracle.life(of: plan.topic, epoch: epoch, client: peer.number))
    }
    return publication.life
  }

  /// Encodes the record as it must have been sent, and compares the bytes with those sent.
  private func compare(_ record: TopicRecord, in life: TopicEpoch) {
    var builder = BatchBuilder()
    let headers = record.headers.map { (Array($0.name.utf8), $0.value) }
    record.withUnsafeBytes { payload in
      if let key = record.key {
        key.withUnsafeBytes { try? builder.append(key: $0, headers: headers, payload: payload) }
      } else {
        try? builder.append(key: nil, headers: headers, payload: payload)
      }
    }
    builder.bytes.withUnsafeBytes { bytes in
      var records = BatchIterator(bytes, count: 1, time: record.time.millisecondsSince1970)
      if let body = try? records.next() { life.observe(body, at: record.offset, client: peer.number) }
    }
  }

  private func checkGone(upTo offset: UInt64) {
    guard let lowest = life?.lowestForReturning, !mayHaveGaps else { return }
    check(offset <= lowest, "records before \(offset) were skipped, while the log has all from \(lowest)")
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    hear("the end")
    peer.note("hears the end of \(plan.topic): \(completion)")
    isOver = true
    subscription = nil
    var again = 0
    switch completion {
    case .finished:
      check(oracle.mayHaveEnded(plan.topic, with: .finished), "finished without a producer's request")
    case .failure(let error):
      switch error.code {
      case .topicFailed:
        check(
          oracle.mayHaveEnded(
            plan.topic,
            with: .failure(code: ErrorCode(rawValue: error.brokerCode ?? 0), message: error.message)),
          "failed without a producer's request: \(error)")
      case .producerLost: oracle.lostProducers(of: plan.topic, client: peer.number)
      case .topicExists:
        check(
          oracle.mayRefuse(statement ?? TopicSettings(), of: plan.topic), "refused for its settings: \(error)"
        )
      case .topicDeleted:
        check(oracle.deletedTopics.contains(plan.topic), "deleted without a request")
        again = 1
      case .lagged:
        check(plan.lag == .fail, "lagged, where it asked to skip")
        again = 1
      case .epochChanged:
        check(
          peer.plan.persists && plan.lag == .fail && oracle.mayHaveRestarted(plan.topic), "epoch-changed")
        again = 1
      case .closed: break
      case .shuttingDown, .cutOff, .keepaliveTimeout: check(!peer.plan.persists, "ended with \(error.code)")
      default: check(false, "ended with \(error.code): \(error)")
      }
    }
    if again > 0, !peer.isSettling { peer.subscribe(plan, left: left, within: .milliseconds(100)) }
    peer.over(self)
  }

  /// Checks common to all values.
  private func hear(_ what: String) {
    check(subscription != nil || isOver || isCancelled, "\(what) before the subscription")
    check(!isOver, "\(what) after the end")
    check(!isCancelled, "\(what) after cancel()")
    check(!isInside, "\(what) within another")
    check(peer.loop.isCurrent, "\(what) on another thread")
  }

  // MARK: Demand

  private func request(_ count: Int?) {
    if peer.isGone { return }
    guard let subscription, !isOver, !isCancelled else { return }
    add(count)
    peer.note("requests \(count.map(String.init) ?? "unlimited") of \(plan.topic)")
    subscription.request(count.map { .max($0) } ?? .unlimited)
  }

  private func add(_ count: Int?) {
    if let count, requested != .max { requested += UInt64(count) } else { requested = .max }
  }

  private func ask(first: Bool = false) {
    switch plan.demand {
    case .unlimited:
      if !first || peer.random.oneIn(2) {
        request(nil)
      } else {
        later(within: .milliseconds(50)) { $0.request(nil) }
      }
    case .one: if !first || peer.random.oneIn(2) { request(1) }
    case .bursts(let most): request(peer.random.next(in: 1...most))
    }
  }

  /// The demand returned for a value: all, some or none of the demand that is due now.
  private func answer() -> Subscribers.Demand {
    guard !hasLastRequest, requested != .max else { return .none }
    if plan.cancelOneIn > 0, !peer.isSettling, peer.random.oneIn(plan.cancelOneIn * 20) {
      cancel()
      return .none
    }
    switch plan.demand {
    case .unlimited: return .none
    case .one where peer.random.oneIn(4): think()
    case .one:
      add(1)
      return .max(1)
    case .bursts(let most):
      if peer.random.oneIn(3) {
        // Requests more from within `receive(_:)`.
        request(peer.random.next(in: 1...most))
      } else if requested - received <= UInt64(most) / 2 {
        think()
      }
    }
    return .none
  }

  private func think() {
    guard !isThinking else { return }
    isThinking = true
    later(within: plan.thinking) {
      $0.isThinking = false
      if !$0.hasLastRequest, $0.requested != .max { $0.ask() }
    }
  }

  private func later(within delay: Duration, _ body: @escaping (LibrarySubscriber) -> Void) {
    let delay = peer.isSettling ? .milliseconds(1) : peer.random.next(in: .zero...delay)
    _ = peer.loop.schedule(after: delay) { [weak self] in
      guard let self, !isOver, !isCancelled else { return }
      body(self)
    }
  }

  /// Acts from another thread.
  func meddle() {
    guard !isOver, !isCancelled, subscription != nil else { return }
    if plan.cancelOneIn > 0, !peer.isSettling, peer.random.oneIn(plan.cancelOneIn * 10) { return cancel() }
    if !hasLastRequest, plan.demand != .unlimited, requested != .max { request(peer.random.next(in: 1...3)) }
  }

  private func cancel() {
    guard !isOver, !isCancelled, let subscription else { return }
    peer.note("cancels \(plan.topic)")
    isCancelled = true
    subscription.cancel()
    if peer.random.oneIn(3) {
      // A second or late call has no effect.
      subscription.cancel()
      subscription.request(.max(1))
    }
    self.subscription = nil
    if peer.random.oneIn(2), !peer.isSettling, peer.loop.isCurrent {
      peer.subscribe(plan, left: left, within: .milliseconds(100))
    }
    peer.over(self)
  }

  /// The client is closed, or about to be; only the completion can follow.
  func disconnected() {
    hasLastRequest = true
  }

  /// The client may have received everything from the broker, the completion included, but not passed it on: it prefetches, or a mark has used the
  /// demand of a granted record.
  var mayLinger: Bool {
    (prefetches || hearsMarks) && received == requested && (plan.lag == .fail || !oracle.isOpen(plan.topic))
  }

  // MARK: Settling

  func settle() {
    later(within: .zero) { subscriber in
      subscriber.hasLastRequest = true
      switch subscriber.peer.random.next(below: 8) {
      case 0: break
      case 1...2: subscriber.request(subscriber.peer.random.next(in: 1...40))
      default: subscriber.request(nil)
      }
    }
  }

  /// The first offset that it has yet to learn of. Without marks, it doesn't learn that earlier records were dropped.
  private func first(from next: UInt64, in life: TopicEpoch?) -> UInt64 {
    hearsMarks ? next : max(next, life?.oldest ?? 0)
  }

  var unsettled: String? {
    guard !isOver, !isCancelled else { return nil }
    let state =
      "\(title): next \(next.map(String.init) ?? "?"), \(received) of \(requested) received\(hasLastRequest ? "" : ", more to request")"
    guard hasLastRequest else { return state }
    if received == requested { return nil }
    // Before its first value, the expected records are unknown; but with marks, the first value arrives without demand.
    guard let next else { return hearsMarks ? state : nil }
    if peer.plan.persists, oracle.mayHaveRestarted(plan.topic) {
      let life = oracle.presentLife(of: plan.topic)
      guard plan.filter.isEmpty, first(from: next, in: life) < oracle.head(of: plan.topic) ?? 0 else {
        return nil
      }
      if let life, life.isCompact, !hearsMarks || isLive {
        guard life.firstOwed(from: next, following: followed ?? 0) != nil else { return nil }
      }
      return "\(state), started anew"
    }
    guard let epoch = oracle.onlyEpoch(of: plan.topic) ?? life?.epoch,
      let life = oracle.lives.first(where: { $0.epoch == epoch }),
      let head = life.head
    else { return nil }
    if !plan.filter.isEmpty {
      if let wanted = life.firstWanted(by: plan.filter, from: next) { return "\(state), \(wanted) is wanted" }
      return life.ending == nil ? nil : "\(state), and it has ended"
    }
    if hearsMarks && !isLive { return "\(state), head \(head)" }
    if first(from: next, in: life) < head {
      guard life.isCompact else { return "\(state), head \(head)" }
      // Without marks, it doesn't receive a deletion at the end of the replay.
      if let owed = life.firstOwed(from: next, following: hearsMarks ? 0 : followed ?? 0) {
        return "\(state), \(owed) is owed, head \(head)"
      }
    }
    return life.ending == nil ? nil : "\(state), and it has ended"
  }
}

extension SubscriptionPlan.Start {
  init(_ start: Subscribe.Start) {
    self =
      switch start {
      case .replay: .replay
      case .earliest: .earliest
      case .new: .new
      case .last(let count): .last(count)
      case .offset(let offset): .offset(offset)
      case .time(let time): .time(Timestamp(millisecondsSince1970: time))
      }
  }
}
