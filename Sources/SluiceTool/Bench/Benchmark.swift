import Glibc
import ReactiveCore
import SluiceClient
import SluiceCommand
import SluiceIO
import Synchronization

/// One run of `sluice bench`, on a thread of its own that waits for the others.
struct Benchmark {
  /// Why a run has no results, besides a `ClientError`.
  enum Failure: Error {
    case said(String)
    case interrupted
  }

  private let command: BenchCommand
  private let access: ClientAccess
  private let topic: String
  private let isStopped = Shared(Atomic(false))
  private let sent = Shared(Atomic<UInt64>(0))

  /// How many bytes producers may be ahead of the slowest subscriber: less than the default retention of a topic, so that no record is dropped.
  private static let windowBytes = 16 << 20

  init(_ command: BenchCommand, _ access: ClientAccess) {
    self.command = command
    self.access = access
    topic = "bench.\(getpid()).\(UInt64(EpollLoop.time.nanoseconds) % 1_000_000_007)"
  }

  /// Stops `run()`, which deletes its topic. From any thread.
  func interrupt() {
    isStopped.value.store(true, ordering: .relaxed)
  }

  /// The number of published records. From any thread.
  var progress: UInt64 { sent.value.load(ordering: .relaxed) }

  private var isInterrupted: Bool { isStopped.value.load(ordering: .relaxed) }

  /// - Throws: `Failure`, or `ClientError`.
  func run() throws -> BenchReport {
    let network = SocketNetwork()
    let receiving = try loops(min(command.subscribers, max(1, LoopGroup.availableCores - 1)), "receive")
    let sending = try loops(1, "send")
    defer { for loop in receiving + sending { loop.stop() } }

    let control = try connect(network, sending[0])
    _ = try Waiting.answer { control.createTopic(topic, completion: $0) }
    defer { _ = try? Waiting.answer { control.deleteTopic(topic, completion: $0) } }

    var subscribers: [BenchSubscriber] = []
    for index in 0..<command.subscribers {
      let client = try connect(network, receiving[index % receiving.count])
      let subscriber = BenchSubscriber(client, demand: command.demand)
      client.topic(topic).subscribe(subscriber)
      subscribers.append(subscriber)
    }
    var publishers: [BenchPublisher] = []
    for index in 0..<command.publishers {
      let client = try connect(network, sending[index % sending.count])
      publishers.append(BenchPublisher(client, topic: topic, size: command.size))
    }
    var report = BenchReport(
      server: "\(access.servers[0]) (\(control.broker.software))", size: command.size,
      publishers: command.publishers,
      subscribers: command.subscribers)
    report.throughput = try throughput(publishers, subscribers)
    if command.latencyTime > .zero { report.latency = try latency(publishers[0], subscribers) }
    return report
  }

  // MARK: Throughput

  private func throughput(
    _ publishers: [BenchPublisher], _ subscribers: [BenchSubscriber]
  ) throws -> BenchReport.Throughput {
    let window = UInt64(max(Self.windowBytes / command.size, 64))
    let shares = publishers.indices.map { index in
      command.records / UInt64(publishers.count)
        + (UInt64(index) < command.records % UInt64(publishers.count) ? 1 : 0)
    }
    let begin = EpollLoop.time
    let done = Semaphore()
    for (publisher, share) in zip(publishers, shares) {
      Threads.start {
        publisher.publish(share) {
          let total = sent.value.add(1, ordering: .relaxed).newValue
          // Checked every 256 records: with a thousand subscribers, checking each time would be most of the work.
          guard total % 256 == 0 else { return true }
          while total > window / 2 + (subscribers.map(\.received).min() ?? 0) {
            if isInterrupted || subscribers.contains(where: { $0.isOver }) { return false }
            usleep(20)
          }
          return true
        }
        done.signal()
      }
    }
    for _ in publishers { done.wait() }
    for publisher in publishers { try publisher.flush() }
    let published = EpollLoop.time
    try wait(for: subscribers, count: command.records)
    return BenchReport.Throughput(
      records: command.records, publishing: (published - begin).inSeconds,
      delivering: (EpollLoop.time - begin).inSeconds)
  }

  /// Waits until each subscriber has received that many records.
  private func wait(for subscribers: [BenchSubscriber], count: UInt64) throws {
    for subscriber in subscribers {
      while subscriber.received < count {
        if isInterrupted { throw Failure.interrupted }
        if subscriber.isOver { break }
        usleep(100)
      }
      if let failure = subscriber.failure { throw failure }
      guard subscriber.received >= count, subscriber.gaps == 0 else {
        throw Failure.said(
          "a subscriber missed \(subscriber.gaps) records: the broker dropped them first; raise its --replay-bytes"
        )
      }
    }
  }

  // MARK: Latency

  private func latency(
    _ publisher: BenchPublisher, _ subscribers: [BenchSubscriber]
  ) throws -> BenchReport.Latency {
    let time = command.latencyTime.inSeconds
    let count = max(UInt64(command.rate * time), 1)
    for subscriber in subscribers { subscriber.measuresLatency = true }
    var pace = Pace(rate: command.rate)
    let begin = EpollLoop.time
    publisher.publish(count) {
      pace.wait()
      return !isInterrupted
    }
    let seconds = (EpollLoop.time - begin).inSeconds
    try publisher.flush()
    try wait(for: subscribers, count: command.records + count)
    var histogram = LatencyHistogram()
    for subscriber in subscribers { histogram.merge(subscriber.histogram) }
    return BenchReport.Latency(rate: Double(count) / seconds, seconds: seconds, histogram: histogram)
  }

  // MARK: Means

  private func loops(_ count: Int, _ name: String) throws -> [EpollLoop] {
    var loops: [EpollLoop] = []
    do {
      for index in 0..<count { loops.append(try EpollLoop.start(name: "\(name)-\(index)")) }
    } catch {
      throw Failure.said("cannot start: \(error)")
    }
    return loops
  }

  private func connect(_ network: SocketNetwork, _ loop: EpollLoop) throws -> Client {
    var options = ClientOptions()
    // A reconnection would distort the results.
    options.reconnect = nil
    access.apply(to: &options)
    return try Waiting.answer {
      Client.connect(to: access.servers, options: options, network: network, loop: loop, completion: $0)
    }
  }
}

/// A producer of records that begin with their creation time.
// Unchecked: used by one thread at a time: the publishing thread, then the thread that waits for it.
@safe
final class BenchPublisher: @unchecked Sendable {
  private let client: Client
  private let subject: TopicSubject
  private let payload: UnsafeMutableRawBufferPointer
  private(set) var failure: ClientError?

  init(_ client: Client, topic: String, size: Int) {
    self.client = client
    subject = client.subject(topic)
    unsafe payload = .allocate(byteCount: size, alignment: 8)
    for index in unsafe payload.indices { unsafe payload[index] = UInt8(truncatingIfNeeded: index) }
  }

  deinit {
    unsafe payload.deallocate()
  }

  /// Publishes up to `count` records, as the broker's grants allow. Calls `pause` before each, and stops when it returns false.
  func publish(_ count: UInt64, after pause: () -> Bool) {
    for _ in 0..<count {
      guard pause() else { return }
      unsafe payload.storeBytes(of: EpollLoop.time.nanoseconds.littleEndian, as: UInt64.self)
      do throws(ClientError) {
        let bytes = unsafe UnsafeRawBufferPointer(payload)
        guard try unsafe !subject.enqueue(copying: bytes) else { continue }
        try Waiting.answer { unsafe subject.enqueue(Message([UInt8](bytes)), completion: $0) }
      } catch {
        failure = error
        return
      }
    }
  }

  /// Returns when all records are acknowledged.
  func flush() throws(ClientError) {
    if let failure { throw failure }
    try Waiting.answer { subject.flush(completion: $0) }
  }
}

/// Counts records, checks their order, and measures their age.
// Unchecked: other threads use only atomics and values behind locks; the rest is used on the client's loop.
final class BenchSubscriber: Subscriber, @unchecked Sendable {
  typealias Input = TopicRecord
  typealias Failure = ClientError

  private let client: Client
  private let demand: Int?
  private let count = Atomic<UInt64>(0)
  private let missing = Atomic<UInt64>(0)
  private let latencyIsMeasured = Atomic(false)
  private let end = Mutex<Subscribers.Completion<ClientError>?>(nil)
  private let times = Mutex(LatencyHistogram())
  private var next: UInt64 = 0

  /// - Parameter demand: see `BenchCommand.demand`.
  init(_ client: Client, demand: Int?) {
    self.client = client
    self.demand = demand
  }

  // MARK: From any thread

  var received: UInt64 { count.load(ordering: .relaxed) }
  /// Records that are missing in the sequence of offsets.
  var gaps: UInt64 { missing.load(ordering: .relaxed) }
  var isOver: Bool { end.withLock { $0 != nil } }
  var histogram: LatencyHistogram { times.withLock { $0 } }

  var failure: ClientError? {
    end.withLock { if case .failure(let error)? = $0 { error } else { nil } }
  }

  var measuresLatency: Bool {
    get { latencyIsMeasured.load(ordering: .relaxed) }
    set { latencyIsMeasured.store(newValue, ordering: .relaxed) }
  }

  // MARK: On the loop

  func receive(subscription: any Subscription) {
    subscription.request(demand.map { .max($0) } ?? .unlimited)
  }

  func receive(_ record: TopicRecord) -> Subscribers.Demand {
    if record.offset != next { missing.add(record.offset &- next, ordering: .relaxed) }
    next = record.offset &+ 1
    if latencyIsMeasured.load(ordering: .relaxed) {
      let made = unsafe record.withUnsafeBytes {
        unsafe UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self))
      }
      let now = EpollLoop.time.nanoseconds
      times.withLock { $0.add(now > made ? now - made : 0) }
    }
    // Only this thread writes it.
    count.store(count.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    return demand == nil ? .none : .max(1)
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    end.withLock { $0 = completion }
  }
}
