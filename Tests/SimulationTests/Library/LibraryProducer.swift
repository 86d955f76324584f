import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceWire

/// Publishes through a `TopicSubject`, in one of several ways.
final class LibraryProducer {
  private enum Manner: UInt64 {
    case send, enqueue, publish, upstream
  }

  private let plan: ProducerPlan
  private unowned let peer: LibraryPeer
  private let manner: Manner
  private var subject: TopicSubject?
  private let ledger: PublicationLedger
  private var source: DemandedSource?
  private var remaining: Int
  /// Completions that haven't been called yet.
  private var awaited = 0
  private var isEnding = false
  private var isEnded = false
  private var isOver = false
  private var isWaiting = false
  private var subscriber: AnyCancellable?
  private var attachment: AnyCancellable?

  init(_ plan: ProducerPlan, peer: LibraryPeer, client: Client) {
    self.plan = plan
    self.peer = peer
    remaining = plan.records
    manner = Manner(rawValue: peer.random.next(below: 4))!
    ledger = peer.oracle.makePublication(
      topic: plan.topic, acknowledges: plan.acknowledges, client: peer.number)
    ledger.isOfLibrary = true
    ledger.resumes = peer.plan.persists
    peer.note("opens publication \(ledger.number) to \(plan.topic), to \(manner)")
    if let stated = peer.simulation.scenario.stated(of: plan.topic), peer.random.oneIn(2) {
      ledger.statement = stated
    }
    let subject = client.subject(
      plan.topic, settings: ledger.statement, acknowledgement: plan.acknowledges ? .received : .none)
    self.subject = subject
    subscriber = subject.sink(
      receiveCompletion: { [weak self] in self?.over($0) }, receiveValue: { _ in })
    if manner == .upstream {
      let source = DemandedSource(producer: self)
      self.source = source
      attachment = source.subscribe(subject)
    }
    later { $0.pump() }
  }

  private var oracle: Oracle { peer.oracle }

  private func check(_ holds: Bool, _ what: @autoclosure () -> String) {
    if !holds { oracle.fail(peer.number, "library publication \(ledger.number) to \(plan.topic): \(what())") }
  }

  var isAttached: Bool { subject != nil && !isOver }

  /// The producer has left, but its published records may wait for subscribers without a limit; the publication stays open until then.
  var mayLinger: Bool { isEnding && plan.finale == .cancel && !isOver && oracle.mayHoldUp(plan.topic) }

  private func later(_ body: @escaping (LibraryProducer) -> Void) {
    let delay = peer.isSettling ? .milliseconds(1) : peer.random.next(in: plan.pauses)
    _ = peer.loop.schedule(after: delay) { [weak self] in if let self { body(self) } }
  }

  // MARK: Publishing

  private func pump() {
    isWaiting = false
    guard let subject, !isOver, !isEnding else { return }
    if manner == .upstream {
      source?.flow()
    } else {
      for _ in 0..<min(peer.isSettling ? remaining : peer.random.next(in: plan.burst), remaining) {
        publish(makeMessage(), to: subject)
      }
    }
    if remaining == 0 { return conclude(subject) }
    guard !isWaiting else { return }
    isWaiting = true
    later { $0.pump() }
  }

  private func publish(_ message: Message, to subject: TopicSubject) {
    let producer = Unsent(self)
    switch manner {
    case .send, .upstream: subject.send(message)
    case .enqueue:
      awaited += 1
      subject.enqueue(message) { producer.value?.answered($0.map { _ in nil }) }
    case .publish:
      awaited += 1
      let sequence = UInt64(ledger.sent - 1)
      subject.publish(message) { result in
        if case .success(let receipt) = result { producer.value?.receive(receipt, sequence) }
        producer.value?.answered(result.map { $0.offset })
      }
    }
  }

  private func receive(_ receipt: TopicSubject.Receipt, _ sequence: UInt64) {
    check(receipt.sequence == sequence, "record \(sequence) has the receipt of \(receipt.sequence)")
    if let offset = receipt.offset, let life = knownLife {
      life.place(ledger.number, Int(sequence), at: offset, client: peer.number)
    }
  }

  private var knownLife: TopicEpoch? {
    if ledger.resumes {
      return oracle.onlyEpoch(of: plan.topic).map {
        oracle.life(of: plan.topic, epoch: $0, client: peer.number)
      }
    }
    if ledger.life == nil, let epoch = oracle.onlyEpoch(of: plan.topic) {
      ledger.found(in: oracle.life(of: plan.topic, epoch: epoch, client: peer.number))
    }
    return ledger.life
  }

  private func answered(_ result: Result<UInt64?, ClientError>) {
    awaited -= 1
    check(awaited >= 0, "a completion is called twice")
    if case .failure(let error) = result { checkFailure(error) }
  }

  /// Creates the next message and records it in the ledger.
  func makeMessage() -> Message {
    let limit = min(peer.simulation.scenario.longestRecord - 64, Noise.longest)
    let size = min(max(peer.random.next(in: plan.sizes), PublicationLedger.nameSize), limit)
    var payload = Noise.piece(of: size, choice: UInt64(ledger.number) << 32 | UInt64(ledger.sent)) {
      Array($0)
    }
    payload.withUnsafeMutableBytes {
      $0.storeBytes(of: ledger.number.littleEndian, as: UInt32.self)
      $0.storeBytes(of: UInt32(ledger.sent).littleEndian, toByteOffset: 4, as: UInt32.self)
    }
    let isKeyed = peer.simulation.scenario.isKeyed
    let number = isKeyed ? Int(peer.random.next(below: 12)) : ledger.sent % 7
    let key = isKeyed || peer.random.oneIn(8) ? Array("key \(number)".utf8) : nil
    let headers = peer.random.oneIn(10) ? [Message.Header("n", "\(ledger.sent)")] : []
    var builder = BatchBuilder()
    payload.withUnsafeBytes { payload in
      let headers = headers.map { (Array($0.name.utf8), $0.value) }
      if let key {
        key.withUnsafeBytes { try? builder.append(key: $0, headers: headers, payload: payload) }
      } else {
        try? builder.append(key: nil, headers: headers, payload: payload)
      }
    }
    ledger.send(builder.bytes, starts: [0])
    remaining -= 1
    return Message(payload, key: key, headers: headers)
  }

  var hasMore: Bool { remaining > 0 && !isOver && !isEnding }

  // MARK: The end

  private func conclude(_ subject: TopicSubject) {
    isEnding = true
    switch plan.finale {
    case .stay:
      let producer = Unsent(self)
      awaited += 1
      subject.flush { result in producer.value?.flushed(result) }
    case .cancel:
      // Accepted records are still sent.
      subscriber = nil
      attachment = nil
      source = nil
      self.subject = nil
    case .complete: end(.finished, .finished)
    case .fail:
      let message = "failed by \(peer.name)"
      end(.failure(.topicFailure(message)), .failure(code: .producerFailure, message: message))
    }
  }

  private func flushed(_ result: Result<Void, ClientError>) {
    awaited -= 1
    switch result {
    case .success:
      check(
        !plan.acknowledges || subject?.acknowledgedCount == UInt64(ledger.sent),
        "flushed with \(subject?.acknowledgedCount ?? 0) of \(ledger.sent) acknowledged")
      if plan.acknowledges { ledger.acknowledgedAll() }
    case .failure(let error): checkFailure(error)
    }
  }

  private func end(_ completion: Subscribers.Completion<ClientError>, _ ending: Complete.Ending) {
    oracle.asked(toEnd: plan.topic, ending)
    awaited += 1
    let producer = Unsent(self)
    subject?.complete(completion) { result in
      guard let producer = producer.value else { return }
      producer.awaited -= 1
      if case .failure(let error) = result {
        producer.checkFailure(error)
      } else if let life = producer.knownLife {
        life.told(ending, at: nil, client: producer.peer.number)
      }
    }
  }

  private func checkFailure(_ error: ClientError) {
    switch error.code {
    case .closed: break
    case .cutOff, .shuttingDown, .keepaliveTimeout:
      check(!peer.plan.persists, "failed with \(error.code)")
    case .topicEnded, .topicFailed:
      check(
        !oracle.isOpen(plan.topic) || oracle.mayHaveRestarted(plan.topic),
        "\(error.code), while it goes on")
    case .topicDeleted: check(oracle.deletedTopics.contains(plan.topic), "deleted without a request")
    case .topicExists:
      check(oracle.mayRefuse(ledger.statement, of: plan.topic), "refused for its settings: \(error)")
    default: check(false, "failed with \(error.code): \(error)")
    }
  }

  /// The publication has ended, as its subscribers learn.
  private func over(_ completion: Subscribers.Completion<ClientError>) {
    check(!isEnded, "ends twice")
    isEnded = true
    isOver = true
    ledger.ended()
    peer.note("publication \(ledger.number) is over: \(completion)")
    if case .failure(let error) = completion, plan.finale != .fail { checkFailure(error) }
  }

  func disconnected() {
    isOver = true
    ledger.ended()
    source = nil
    subscriber = nil
    attachment = nil
    subject = nil
  }

  // MARK: Settling

  func settle() {
    if !isWaiting { pump() }
  }

  var unsettled: String? {
    if isOver {
      return awaited == 0 ? nil : "publication \(ledger.number) is over, and \(awaited) answers are missing"
    }
    if oracle.mayHoldUp(plan.topic) { return nil }
    if remaining > 0 { return "publication \(ledger.number) has \(remaining) to send" }
    return awaited == 0 ? nil : "publication \(ledger.number) waits for \(awaited) answers"
  }
}

/// A publisher that delivers exactly what is requested.
private final class DemandedSource: Publisher, Subscription {
  typealias Output = Message
  typealias Failure = ClientError

  private weak var producer: LibraryProducer?
  private var downstream: AnySubscriber<Message, ClientError>?
  private var demand = Subscribers.Demand.none
  private var isFlowing = false

  init(producer: LibraryProducer) {
    self.producer = producer
  }

  func receive<S: Subscriber>(subscriber: S) where S.Input == Message, S.Failure == ClientError {
    downstream = AnySubscriber(subscriber)
    subscriber.receive(subscription: self)
  }

  func request(_ demand: Subscribers.Demand) {
    self.demand += demand
  }

  func cancel() {
    downstream = nil
  }

  /// Delivers the requested messages.
  func flow() {
    guard !isFlowing else { return }
    isFlowing = true
    while demand > .none, let downstream, let producer, producer.hasMore {
      demand -= 1
      demand += downstream.receive(producer.makeMessage())
    }
    isFlowing = false
  }
}
