import Glibc
import SluiceIO
import SluiceNATS

@testable import SluiceCluster

/// The decisions of many nodes on one stream of control messages, without connections or a simulated engine: messages are stored after a fixed time, and reach
/// every node after another. Counts messages and time.
final class ControlScale {
  struct Times {
    var store = Duration.milliseconds(3)
    var watch = Duration.milliseconds(1)
    /// The time from gained to opened, and from closing to closed.
    var broker = Duration.milliseconds(10)
  }

  private enum Job {
    case store(node: Int, ControlWrite)
    case deliver(node: Int, ControlRecord, UInt64)
    case answer(node: Int, UInt64, WriteOutcome)
    case read(node: Int, UInt64, ControlRecord)
    case opened(node: Int, shard: Int, term: UInt64)
    case closed(node: Int, shard: Int, term: UInt64)
    case timer(node: Int)
  }

  private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000)
  private(set) var controls: [Int: ClusterControl] = [:]
  /// The running nodes, in order, and the node to which each shard belongs.
  private var nodes: [Int] = []
  private var targets: [Int?] = []
  private var jobs: [UInt64: [Job]] = [:]
  private var times: [UInt64] = []
  private var sequence: UInt64 = 0
  private var last: [String: (record: ControlRecord, sequence: UInt64)] = [:]
  private var timers: [Int: MonotonicTime] = [:]
  private let shards: Int
  private let delays = Times()

  /// The numbers of messages stored, by the kind of their subject, and of messages delivered.
  private(set) var stored: [String: Int] = [:]
  private(set) var delivered = 0
  private(set) var takeOvers: [TakeOver] = []
  /// The processor time of all nodes' decisions.
  private(set) var decisionSeconds = 0.0

  init(shards: Int) { self.shards = shards }

  func start(_ node: Int) {
    var options = ClusterOptions(
      name: "node-\(node)", advertisedAddress: "10.0.\(node / 250).\(node % 250):7420", engine: [])
    options.shards = shards
    options.version = "1.0"
    controls[node] = ClusterControl(options, writer: UInt64(node) + 1)
    nodesChanged()
    controls[node]?.watchBegan()
    for (record, sequence) in last.values.sorted(by: { $0.sequence < $1.sequence }) {
      controls[node]?.observed(record, sequence, at: now)
    }
    controls[node]?.watchCurrent(at: now)
    advance(node)
  }

  func kill(_ node: Int) {
    controls[node] = nil
    timers[node] = nil
    nodesChanged()
  }

  private func nodesChanged() {
    nodes = controls.keys.sorted()
    targets = []
  }

  func forgetCounts() {
    stored = [:]
    delivered = 0
    takeOvers = []
    decisionSeconds = 0
  }

  var isSettled: Bool {
    if targets.isEmpty {
      let placement = Placement(nodes: nodes.map { "node-\($0)" })
      targets = (0..<shards).map { shard in placement.target(of: shard).flatMap { Int($0.dropFirst(5)) } }
    }
    return (0..<shards).allSatisfy { shard in
      guard let node = targets[shard] else { return false }
      if case .local = controls[node]?.route(of: shard) { return true }
      return false
    }
  }

  /// Runs until the condition is true, checked ten times a second. Returns whether it is.
  func run(limit: Duration, until condition: () -> Bool = { false }) -> Bool {
    let end = now + limit
    while now < end {
      if condition() { return true }
      run(to: now + .milliseconds(100))
    }
    return condition()
  }

  private func run(to end: MonotonicTime) {
    while let time = times.first, time <= end.nanoseconds {
      now = MonotonicTime(nanoseconds: time)
      popTime()
      for job in jobs.removeValue(forKey: time) ?? [] { perform(job) }
    }
    now = end
  }

  // MARK: A heap of times

  private func post(_ job: Job, after delay: Duration) { post(job, at: now + delay) }

  private func post(_ job: Job, at time: MonotonicTime) {
    let key = max(time.nanoseconds, now.nanoseconds + 1)
    if jobs[key, default: []].isEmpty { push(key) }
    jobs[key, default: []].append(job)
  }

  private func push(_ key: UInt64) {
    times.append(key)
    var child = times.count - 1
    while child > 0, times[(child - 1) / 2] > times[child] {
      times.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  private func popTime() {
    times.swapAt(0, times.count - 1)
    times.removeLast()
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < times.count && times[child] < times[least] {
        least = child
      }
      if least == parent { return }
      times.swapAt(parent, least)
      parent = least
    }
  }

  // MARK: Jobs

  private func perform(_ job: Job) {
    switch job {
    case .store(let node, let write): store(write, of: node)
    case .deliver(let node, let record, let sequence):
      delivered += 1
      change(node) { $0.observed(record, sequence, at: now) }
    case .answer(let node, let number, let outcome): change(node) { $0.finished(number, outcome, at: now) }
    case .read(let node, let number, let record):
      let outcome = last[record.subject].map { ReadOutcome.found($0.record, $0.sequence) } ?? .none
      change(node) { $0.read(number, outcome, at: now) }
    case .opened(let node, let shard, let term): change(node) { $0.opened(shard, term: term, at: now) }
    case .closed(let node, let shard, let term): change(node) { $0.closed(shard, term: term, at: now) }
    case .timer(let node):
      guard timers[node] == now else { return }
      timers[node] = nil
      change(node) { _ in }
    }
  }

  private func store(_ write: ControlWrite, of node: Int) {
    let subject = write.record.subject
    guard (last[subject]?.sequence ?? 0) == write.expected else {
      return post(.answer(node: node, write.number, .refused), after: delays.watch)
    }
    sequence += 1
    let record =
      ControlRecord(subject: subject, payload: write.record.payload, sequence: sequence) ?? write.record
    last[subject] = (record, sequence)
    stored[String(subject.split(separator: ".")[1]), default: 0] += 1
    post(.answer(node: node, write.number, .stored(sequence)), after: delays.watch)
    for other in nodes {
      post(.deliver(node: other, record, sequence), after: delays.watch)
    }
  }

  private func change(_ node: Int, _ body: (inout ClusterControl) -> Void) {
    guard controls[node] != nil else { return }
    let start = clock()
    body(&controls[node]!)
    decisionSeconds += Double(clock() - start) / Double(CLOCKS_PER_SEC)
    advance(node)
  }

  private func advance(_ node: Int) {
    let start = clock()
    let actions = controls[node]?.takeActions(at: now) ?? []
    let deadline = controls[node]?.deadline(at: now)
    decisionSeconds += Double(clock() - start) / Double(CLOCKS_PER_SEC)
    for action in actions {
      switch action {
      case .write(let write): post(.store(node: node, write), after: delays.store)
      case .read(let number, let record): post(.read(node: node, number, record), after: delays.store)
      // The nodes have no brokers here.
      case .check: break
      case .event(.gained(let shard, let term)):
        post(.opened(node: node, shard: shard, term: term), after: delays.broker)
      case .event(.closing(let shard, let term, _)):
        post(.closed(node: node, shard: shard, term: term), after: delays.broker)
      case .event(.takenOver(let takeOver)): takeOvers.append(takeOver)
      case .event: break
      }
    }
    guard let deadline, timers[node].map({ deadline < $0 || $0 <= now }) ?? true else { return }
    timers[node] = deadline
    post(.timer(node: node), at: deadline)
  }
}
