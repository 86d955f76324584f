import Glibc
import ReactiveCore
import SluiceClient
import SluiceCommand
import SluiceIO

/// One run of `sluice sub`: receives records on the loop, passes them to a sink once per turn, and requests more when they are printed.
// Unchecked: used on the loop only.
final class Subscribing: Subscriber, TurnParticipant, @unchecked Sendable {
  typealias Input = TopicEvent<TopicRecord>
  typealias Failure = ClientError

  private let command: SubCommand
  private let run: Run
  private let client: Client
  private let sink: any RecordSink
  private var ledger: DemandLedger
  private var subscription: (any Subscription)?
  /// The wait for a topic that doesn't exist; nil while the topic exists.
  private var topicWait: TopicWait?
  private var plan: SubscriptionPlan
  private var isUnlimited = false
  /// Whether the topic has existed: the subscription has delivered an event.
  private var isSubscribed = false
  /// Deliveries of a group, in order, which are acknowledged when they are printed.
  private var unsettled = Fifo<Delivery>()
  private var commits = PrintedCommits()
  /// Called when all received records are printed, to end the run.
  private var ending: (() -> Void)?

  private static let pipeWatch = Duration.milliseconds(500)

  /// The first received offset, and the end of the topic at the start of the command, for the progress of writing to a file.
  private var firstOffset: UInt64?
  private var endOffset: UInt64?

  /// - Parameter descriptor: the descriptor of the file for records; nil for standard output.
  init(_ command: SubCommand, _ run: Run, _ client: Client, writingTo descriptor: Int32? = nil) {
    self.command = command
    self.run = run
    self.client = client
    plan = command.plan
    ledger = DemandLedger(command.demand, limit: command.count)
    switch command.printing {
    case .standardOutput(let format):
      sink = StandardOutput(
        format, descriptor: descriptor ?? STDOUT_FILENO,
        name: command.output?.description ?? "standard output",
        loop: run.loop)
    case .command(let text): sink = CommandRunner(text, loop: run.loop)
    }
  }

  func begin() {
    sink.progress = { [unowned self] in progressed($0) }
    run.loop.addTurnParticipant(self)
    run.interrupted = { [self] in interrupt() }
    if let time = command.time {
      _ = run.loop.schedule(after: time) { [self] in end { [run] in run.finish(.success) } }
    }
    watchPipe()
    if command.output != nil { showProgress() }
    if command.count == 0 { return endIfThereIsATopic() }
    subscribe()
    noteFutureStart()
  }

  private func showProgress() {
    if !command.isPattern {
      client.topicInfo(plan.topic) { [weak self] result in
        self?.endOffset = (try? result.get())?.summary.nextOffset
      }
    }
    ProgressLine.start(run) { [weak self] in
      guard let self, ledger.printed > 0 else { return nil }
      let done = UInt64(ledger.printed)
      var total = firstOffset.flatMap { first in endOffset.map { $0 > first ? $0 - first : 0 } }
      if let count = command.count { total = min(total ?? count, count) }
      // After the replay, the total isn't known.
      return ProgressLine.Figures(done: done, total: total.flatMap { $0 >= done ? $0 : nil }, unit: .records)
    }
  }

  /// Reports a start beyond the topic's end, at which the subscription waits silently.
  private func noteFutureStart() {
    guard case .offset(let offset) = plan.start, !command.isPattern, !command.endsWithReplay,
      !command.persistence.isQuiet
    else { return }
    client.topicInfo(plan.topic) { [weak self] result in
      guard let self, ending == nil, case .success(let info) = result else { return }
      let next = info.summary.nextOffset
      guard next < offset else { return }
      run.note(
        "offset \(offset) is beyond the end of topic \(plan.topic), whose next record gets \(next); waiting for it"
      )
    }
  }

  private func subscribe() {
    if let group = command.group {
      let subscriber = AnySubscriber<TopicEvent<Delivery>, ClientError>(
        receiveSubscription: { [self] in receive(subscription: $0) },
        receiveValue: { [self] event in
          receive(event) { delivery in
            if acknowledges { unsettled.append(delivery) }
            return take(delivery.record, deliveries: delivery.count)
          }
        }, receiveCompletion: { [self] in receive(completion: $0) })
      client.group(group.name, options: group.options, of: plan).events.subscribe(subscriber)
    } else {
      client.topic(plan).events.subscribe(self)
    }
  }

  // MARK: A topic that doesn't exist

  /// Ends at once if the topic exists, without reading records.
  private func endIfThereIsATopic() {
    guard !command.isPattern else { return run.finish(.success) }
    client.topicInfo(plan.topic) { [run, client, plan] result in
      switch result {
      case .success: run.finish(.success)
      case .failure(let error): run.fail(error, unknown: plan.topic, client)
      }
    }
  }

  /// Handles a missing topic: fails if the command reads only existing records, otherwise waits for the topic.
  private func topicIsMissing(_ error: ClientError) {
    let wasThere = isSubscribed
    guard !command.endsWithReplay, !(wasThere && command.lag == .fail) else {
      return end { [run, client, plan] in run.fail(error, unknown: plan.topic, client) }
    }
    (isSubscribed, isUnlimited) = (false, false)
    ledger.resubscribe()
    if wasThere {
      run.note("topic \(plan.topic) was deleted; waiting for it")
    } else {
      UnknownTopic.similar(to: plan.topic, client) { [run, plan] similar in
        run.note("topic \(plan.topic) doesn't exist yet; waiting for it\(similar)")
      }
    }
    topicWait = TopicWait(plan.topic, client) { [weak self] result in
      guard let self, ending == nil else { return }
      topicWait = nil
      switch result {
      case .success:
        if wasThere { run.note(SubscriptionNote.restart(of: "the topic", 0)) }
        // The wait began before the topic existed, so the subscription begins with its first record.
        switch plan.start {
        case .replay, .new, .last: plan.start = .earliest
        case .earliest, .offset, .time: break
        }
        subscribe()
      case .failure(let error): end { [run] in run.fail(error) }
      }
    }
  }

  private var acknowledges: Bool { command.group?.options.acknowledgement == .explicit }

  // MARK: Subscriber

  func receive(subscription: any Subscription) {
    self.subscription = subscription
    request()
  }

  func receive(_ event: TopicEvent<TopicRecord>) -> Subscribers.Demand {
    receive(event) { take($0, deliveries: nil) }
  }

  private func receive<Value>(
    _ event: TopicEvent<Value>, _ take: (Value) -> Subscribers.Demand
  ) -> Subscribers.Demand {
    // With a cursor, the subscription lasts until all records are printed; records that still arrive are for the next run.
    if ending != nil, commitsPrinted { return .none }
    switch event {
    case .record(let value): return take(value)
    case .live:
      isSubscribed = true
      if command.endsWithReplay { end { [run] in run.finish(.success) } }
    case .lagged(let missed, let next): run.note(SubscriptionNote.lag(missed, next))
    // Producers come and go with every sluice pub.
    case .producers: break
    case .restarted(let next): run.note(SubscriptionNote.restart(of: "the topic", next))
    case .rewound(let next): run.note(SubscriptionNote.rewind(of: "the topic", next))
    case .topic(let name, let change):
      if let note = SubscriptionNote.change(change, of: name) { run.note(note) }
    }
    // Events other than records also use up demand.
    return isUnlimited ? .none : .max(1)
  }

  private func take(_ record: TopicRecord, deliveries: Int?) -> Subscribers.Demand {
    isSubscribed = true
    ledger.receive()
    if commitsPrinted { commits.received(record) }
    if firstOffset == nil { firstOffset = record.offset }
    sink.take(record, deliveries: deliveries)
    guard ledger.isSatisfied else { return .none }
    return satisfied()
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    subscription = nil
    if case .failure(let error) = completion, error.code == .unknownTopic, !command.isPattern, ending == nil {
      return topicIsMissing(error)
    }
    end { [run] in
      switch completion {
      case .finished: run.finish(.success)
      case .failure(let error): run.fail(error)
      }
    }
  }

  /// Prints at once, because no more records arrive in this turn. Small requests thus take no extra turn of the loop.
  private func satisfied() -> Subscribers.Demand {
    if ledger.isComplete {
      end { [run] in run.finish(.success) }
      return .none
    }
    flush()
    guard ending == nil, let count = ledger.next(), count > 0 else { return .none }
    return .max(count)
  }

  // MARK: Printing

  func turnEnded() -> Bool {
    let before = ledger.printed
    flush()
    if ledger.printed > before { request() }
    concludeIfPrinted()
    return false
  }

  private func flush() {
    printed(sink.flush())
    if let failure = sink.failure { failed(failure) }
  }

  private var commitsPrinted: Bool { command.cursor?.commit == .manual }

  private func progressed(_ result: Result<Printed, SinkFailure>) {
    switch result {
    case .success(let amount):
      printed(amount)
      request()
    case .failure(.command(let message, let status)) where acknowledges:
      let delivery = unsettled.removeFirst()
      if status == GroupChoice.rejectingStatus {
        run.note("\(message); the record is rejected")
        delivery?.reject()
      } else {
        run.note("\(message); the record is retried")
        delivery?.retry(after: command.group?.retryDelay)
      }
      ledger.print(Printed(records: 1, bytes: 0))
      request()
    case .failure(let failure):
      failed(failure)
    }
  }

  private func printed(_ amount: Printed) {
    ledger.print(amount)
    commits.printed(amount.records)
    guard acknowledges else { return }
    for _ in 0..<amount.records { unsettled.removeFirst()?.acknowledge() }
  }

  private func request() {
    guard ending == nil, let subscription else { return }
    guard let count = ledger.next() else {
      if !isUnlimited {
        isUnlimited = true
        subscription.request(.unlimited)
      }
      return
    }
    if count > 0 { subscription.request(.max(count)) }
  }

  // MARK: The end

  /// Stops receiving, and calls `conclusion` when all received records are printed. Only the first call has an effect.
  private func end(_ conclusion: @escaping () -> Void) {
    guard ending == nil else { return }
    ending = conclusion
    // A cancelled subscription can no longer acknowledge or commit.
    if unsettled.isEmpty, !commitsPrinted {
      subscription?.cancel()
      subscription = nil
    }
    // Schedules a turn, whose end checks whether all records are printed.
    run.loop.execute {}
  }

  private func concludeIfPrinted() {
    guard ledger.allPrinted, let ending else { return }
    subscription?.cancel()
    subscription = nil
    topicWait = nil
    ending()
  }

  private func failed(_ failure: SinkFailure) {
    switch failure {
    case .closedPipe: abandon(.success, nil)
    case .failed(let message), .command(let message, _): abandon(.failure, message)
    }
  }

  /// Ends without printing waiting records; a record that is being printed is completed.
  private func abandon(_ code: ExitCode, _ complaint: String?) {
    subscription?.cancel()
    subscription = nil
    topicWait = nil
    ending = {}
    sink.abandon { [run] in run.finish(code, complaint) }
  }

  /// Ends after a signal. A running command delays the end, which is reported after a second.
  private func interrupt() {
    abandon(.interrupted, nil)
    guard sink is CommandRunner else { return }
    _ = run.loop.schedule(after: .seconds(1)) { [run] in
      run.note("waiting for the command of a record to end; to end at once, send another signal")
    }
  }

  /// Detects a closed output while no records arrive.
  private func watchPipe() {
    guard let output = sink as? StandardOutput else { return }
    _ = run.loop.schedule(after: Self.pipeWatch) { [weak self] in
      if output.isClosed { self?.failed(.closedPipe) } else { self?.watchPipe() }
    }
  }
}
