import SluiceBroker
import SluiceIO

/// Samples the broker for its history and its problems: once a second, and less often if a sample takes long.
///
/// Unchecked: belongs to its loop.
final class BrokerSampler: @unchecked Sendable {
  private let source: any AdminSource
  private let loop: any EventLoop
  private let options: AdminOptions
  private var finder: ProblemFinder
  private var timer: TimerToken?
  /// When the last sample was due.
  private var due = MonotonicTime(nanoseconds: 0)
  private var isEnded = false
  private(set) var history: History
  /// The problems in the last sample.
  private(set) var problems: [Problem] = []
  /// The problems by kind, including those beyond the limit of the list.
  var problemKinds: [ProblemKind] { finder.kinds }
  /// The time of the last sample, in milliseconds since 1970; 0 before the first.
  private(set) var time: Int64 = 0
  /// Called after each sample.
  var sampled: (() -> Void)?

  /// The loop may spend one of that many parts of its time on assembling samples.
  private static let share = 50

  init(_ source: any AdminSource, on loop: any EventLoop, _ options: AdminOptions) {
    self.source = source
    self.loop = loop
    self.options = options
    history = History(options.history)
    finder = ProblemFinder(options.problems)
  }

  /// Whether there are a history and a search for problems.
  var isOn: Bool { options.history.length > 0 }

  /// Begins to sample, if it is on. On the loop.
  func start() {
    guard isOn else { return }
    sampleLater(after: .milliseconds(10))
  }

  /// On the loop.
  func end() {
    isEnded = true
    if let timer { loop.cancel(timer) }
    timer = nil
  }

  private func sampleLater(after delay: Duration) {
    guard !isEnded else { return }
    timer = loop.schedule(after: delay) { [weak self] in self?.sample() }
  }

  private func sample() {
    guard source.stage != .starting else { return sampleLater(after: .seconds(1)) }
    let request = SnapshotRequest(
      topics: options.limits.topics, subscriptionsPerTopic: 3, publicationsPerTopic: 0, connections: 0,
      consumersPerTopic: 2)
    // Not called when the broker has stopped.
    source.snapshot(request) { [weak self, loop] assemble in
      loop.execute { [weak self] in self?.take(assemble) }
    }
  }

  private func take(_ assemble: () -> BrokerSnapshot) {
    guard !isEnded else { return }
    let start = ContinuousClock.now
    let snapshot = assemble()
    let cluster = source.cluster
    history.add(snapshot, residentBytes: ProcessNumbers.now.residentBytes, cluster: cluster)
    problems = finder.problems(in: snapshot, cluster?.info)
    time = snapshot.time
    source.tell(problems, finder.kinds, at: loop.now)
    sampled?()
    let taken = ContinuousClock.now - start
    // At a fixed rate, so that each second has a sample.
    due = max(due + .seconds(1), loop.now)
    sampleLater(after: max(due - loop.now, taken * Self.share))
  }
}
