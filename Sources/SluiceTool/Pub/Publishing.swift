import Glibc
import ReactiveCore
import SluiceClient
import SluiceCommand
import SluiceIO
import Synchronization

/// One run of `sluice pub`: a thread reads records and passes them to the subject; the loop waits for acknowledgements.
///
/// Only the subject's buffer is between input and broker. When it is full, the thread waits and reads nothing.
// Unchecked: constants, atomics, and properties that only the loop uses.
final class Publishing: @unchecked Sendable {
  private let command: PubCommand
  private let input: Input
  private let run: Run
  private let client: Client
  private let subject: TopicSubject

  /// The time of the first record, in nanoseconds; 0 before.
  private let started = Atomic<UInt64>(0)
  /// Payload bytes passed to the subject.
  private let bytes = Atomic<UInt64>(0)
  private let isStopped = Atomic(false)

  // The loop's.
  private var isFlushing = false
  private var storageWatch: AnyCancellable?
  /// Observes notices of acknowledged records that the broker has lost.
  private var historyWatch: AnyCancellable?

  /// The limits on records that wait for the broker's grant.
  private static let buffer = TopicSubject.Buffer(records: 65_536, bytes: 4 << 20)
  /// How long to wait for acknowledgements of sent records after Ctrl-C.
  private static let flushTimeout = Duration.seconds(2)
  private static let watchInterval = Duration.milliseconds(100)
  private static let progressInterval = Duration.seconds(1)

  init(_ command: PubCommand, _ input: Input, _ run: Run, _ client: Client) {
    self.command = command
    self.input = input
    self.run = run
    self.client = client
    subject = client.subject(
      command.topic, settings: command.settings, acknowledgement: command.acknowledgement, buffer: Self.buffer
    )
  }

  // MARK: On the loop

  func start() {
    run.interrupted = { [self] in interrupted() }
    watchConnection()
    if !command.persistence.isQuiet {
      watchStorage()
      historyWatch = client.notices.sink { [run] in run.note("\($0)") }
    }
    if case .progress = command.report { reportProgress() }
    if case .summary = command.report { showProgress() }
    Threads.start { [self] in
      let result = Result(catching: pump)
      run.loop.execute { [self] in inputEnded(result) }
    }
  }

  private func inputEnded(_ result: Result<Void, any Error>) {
    guard !isFlushing else { return }
    isFlushing = true
    switch result {
    case .success: end()
    case .failure(let error as ClientError): broken(error)
    case .failure(let error):
      // Records before the error are still published, but the topic stays open, because it is incomplete.
      subject.flush { [self] in flushed($0, complaint: "\(error)") }
    }
  }

  private func end() {
    switch command.ending {
    case nil: subject.flush { [self] in flushed($0) }
    case .finished: subject.complete(.finished) { [self] in flushed($0) }
    case .failure(let message):
      subject.complete(.failure(.topicFailure(message))) { [self] in flushed($0) }
    }
  }

  private func flushed(_ result: Result<Void, ClientError>, complaint: String? = nil) {
    switch result {
    case .success:
      if let complaint {
        return run.finish(
          .failure,
          "\(complaint); the \(Magnitude.grouped(subject.acceptedCount)) records before it are published")
      }
      if case .nothing = command.report {} else { run.note(summary) }
      run.finish(.success)
    case .failure(let error): broken(error)
    }
  }

  private func broken(_ error: ClientError) {
    let accepted = subject.acceptedCount
    let missing = accepted - min(accepted, subject.acknowledgedCount)
    let loss =
      missing == 0 || command.acknowledgement == .none
      ? "" : " (\(Magnitude.grouped(missing)) of \(Magnitude.grouped(accepted)) records aren't acknowledged)"
    run.finish(error.code == .invalidTopic ? .usage : .failure, "\(error)\(loss)")
  }

  private func interrupted() {
    isStopped.store(true, ordering: .relaxed)
    guard !isFlushing else { return giveUp() }
    isFlushing = true
    subject.flush { [self] in flushed($0) }
    _ = run.loop.schedule(after: Self.flushTimeout) { [self] in giveUp() }
  }

  private func giveUp() {
    run.finish(.interrupted, "stopped before all records were acknowledged: \(summary)")
  }

  /// Notices a lost broker while the reading thread waits for input.
  private func watchConnection() {
    _ = run.loop.schedule(after: Self.watchInterval) { [weak self] in
      guard let self else { return }
      if let error = client.failure, !isFlushing {
        isFlushing = true
        broken(error)
      } else {
        watchConnection()
      }
    }
  }

  /// Reports when full or failing storage pauses publishing, and when publishing continues.
  private func watchStorage() {
    var isWaiting = false
    storageWatch = subject.state.sink { [run] state in
      switch state {
      case .active:
        if isWaiting { run.note("the broker takes records again") }
        isWaiting = false
      case .waiting(_, _, let cause):
        if !isWaiting {
          run.note(
            cause.code == .storageFull
              ? "the broker's storage is full, and publishing is paused: delete or trim topics, or raise --storage-limit"
              : "the broker's storage fails, and publishing is paused until it works: \(cause)")
        }
        isWaiting = true
      }
    }
  }

  // MARK: Figures

  private var summary: String {
    let count =
      command.acknowledgement == .none ? subject.acceptedCount : subject.acknowledgedCount
    let begin = started.load(ordering: .relaxed)
    let time = begin == 0 ? 0 : EpollLoop.time.nanoseconds - begin
    let rate = Double(count) / (Double(max(time, 1000)) / 1e9)
    return "published \(Magnitude.grouped(count)) record\(count == 1 ? "" : "s"), "
      + "\(ByteSize.rounded(bytes.load(ordering: .relaxed))), in \(TimeSpan.rounded(.nanoseconds(Int64(clamping: time)))) (\(Magnitude.rounded(rate))/s)"
  }

  /// Shows progress on a terminal, unless the input comes from a terminal.
  private func showProgress() {
    guard case .descriptor(let descriptor) = input, isatty(descriptor) == 0 else { return }
    var status = stat()
    let isFile = unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    // A file may be read from the middle: the rest counts.
    let size = isFile ? UInt64(max(status.st_size - lseek(descriptor, 0, SEEK_CUR), 0)) : 0
    let frame: UInt64 =
      switch command.framing {
      case .delimited: 1
      case .whole: 0
      case .lengthPrefixed: 4
      }
    ProgressLine.start(run) { [weak self] in
      guard let self, subject.acceptedCount > 0 else { return nil }
      let accepted = subject.acceptedCount
      let waiting = accepted - min(accepted, subject.acknowledgedCount)
      return ProgressLine.Figures(
        done: bytes.load(ordering: .relaxed) + accepted * frame, total: isFile ? size : nil, unit: .bytes,
        note: command.acknowledgement == .none ? "" : "\(Magnitude.grouped(waiting)) not acknowledged yet")
    }
  }

  private func reportProgress() {
    _ = run.loop.schedule(after: Self.progressInterval) { [weak self] in
      guard let self, !isFlushing else { return }
      let waiting = subject.acceptedCount - min(subject.acceptedCount, subject.acknowledgedCount)
      run.note("\(summary); \(Magnitude.grouped(waiting)) not acknowledged yet")
      reportProgress()
    }
  }

  // MARK: On the reading thread

  /// Passes every record to the subject.
  ///
  /// - Throws: `InputError` or `ClientError`.
  private func pump() throws {
    var pace = command.rate.map(Pace.init(rate:))
    var failure: ClientError?
    var wrong: InputError?
    var number = 0
    let offer: (UnsafeRawBufferPointer) -> Bool = { [self] payload in
      if started.load(ordering: .relaxed) == 0 {
        started.store(EpollLoop.time.nanoseconds, ordering: .relaxed)
      }
      pace?.wait()
      if isStopped.load(ordering: .relaxed) { return false }
      number += 1
      let message: Message?
      do throws(InputError) {
        message = try unsafe command.notation.message(in: payload, number: number)
      } catch {
        wrong = error
        return false
      }
      do throws(ClientError) {
        try unsafe publish(payload, message)
        bytes.add(UInt64(payload.count), ordering: .relaxed)
        return true
      } catch {
        failure = error
        return false
      }
    }
    let result = Result { () throws(InputError) in try unsafe forEachRecord(offer) }
    if let failure { throw failure }
    if let wrong { throw wrong }
    try result.get()
  }

  private func forEachRecord(_ body: (UnsafeRawBufferPointer) -> Bool) throws(InputError) {
    switch input {
    case .messages(let messages):
      for message in messages {
        guard unsafe message.withUnsafeBytes({ unsafe body($0) }) else { return }
      }
    case .descriptor(let descriptor):
      var reader = RecordReader(descriptor, limit: client.broker.maximumRecord)
      try unsafe reader.forEach(command.framing) { record throws(InputError) in unsafe body(record) }
    }
  }

  /// Waits until the subject has room for the record.
  ///
  /// - Parameter message: the parsed record; nil if all bytes of it are the payload.
  private func publish(_ payload: UnsafeRawBufferPointer, _ message: Message?) throws(ClientError) {
    if var message {
      message.headers += command.headers
      return try Waiting.answer { subject.enqueue(message, completion: $0) }
    }
    if command.key == nil, command.headers.isEmpty {
      if try unsafe subject.enqueue(copying: payload) { return }
    }
    let message = unsafe Message(
      [UInt8](payload), key: command.key, headers: command.headers)
    try Waiting.answer { subject.enqueue(message, completion: $0) }
  }
}

/// Limits a thread to a rate of steps.
struct Pace {
  private let interval: Double
  private var next: Double
  /// The shortest sleep, in seconds: shorter ones cost too much, and the average rate is right without them.
  private static let grain = 0.001

  /// - Parameter rate: steps per second, more than 0.
  init(rate: Double) {
    interval = 1 / rate
    next = Double(EpollLoop.time.nanoseconds) / 1e9
  }

  /// Waits until the next step is due. After a delay, at most one second of missed steps is made up for.
  mutating func wait() {
    let now = Double(EpollLoop.time.nanoseconds) / 1e9
    let early = next - now
    if early > Self.grain {
      var time = timespec(tv_sec: Int(early), tv_nsec: Int((early - early.rounded(.down)) * 1e9))
      var left = timespec()
      while unsafe nanosleep(&time, &left) != 0 { time = left }
    }
    next = max(next, now - 1) + interval
  }
}
