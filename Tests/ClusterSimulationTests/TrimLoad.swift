import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceSimulation

/// Trims a topic of numbered records while subscribers of all nodes read it with little demand, so that records wait for them in several places.
///
/// The oracle: records arrive in order, and only trimmed ones may be missing. A subscription that starts after an acknowledged trim gets no record below it.
/// Once all nodes have had time to learn of the last trim, no subscriber gets a record below it.
// @unchecked: used by one thread.
final class TrimLoad: StoryLoad, @unchecked Sendable {
  private static let topic = "kept.1"
  /// A cut link is closed within this time, and its successor starts with the topic's floor.
  private static let patience = Duration.seconds(12)

  private unowned let cluster: WholeCluster
  private let clients: [Client]
  private let flaw: LoadFlaw?
  private let loop: any EventLoop
  private let producer: NumberedProducer
  private var readers: [RequestingReader] = []
  /// The highest requested trim offset, and the highest acknowledged one.
  private var asked: UInt64 = 0
  private var trimmed: UInt64 = 0
  private var isTrimming = false
  private var isFinishing = false
  /// Whether all nodes have learned of the last trim.
  private var isQuiet = false
  private var notesSoFar = LoadNotes("trims")

  init(_ cluster: WholeCluster, _ clients: [Client], flaw: LoadFlaw?) {
    self.cluster = cluster
    self.clients = clients
    self.flaw = flaw
    loop = cluster.world.makeLoop(name: "trims")
    producer = NumberedProducer(Self.topic, clients[0], WholeClusterTests.durable, id: 77)
    producer.publish(5)
    // Otherwise subscriptions would create the topic with their own settings.
    _ = cluster.run(limit: .seconds(30)) { producer.isDone }
    // Two subscribers at each node, which may share its records.
    for client in clients + clients { read(client) }
  }

  private func read(_ client: Client) {
    let lowest = trimmed
    var next: UInt64?
    readers.append(
      RequestingReader(client.topic(Self.topic, from: .earliest, lag: .skip)) {
        [unowned self] record in
        take(record, next ?? 0, lowest: next == nil ? lowest : 0)
        next = record.offset + 1
      })
  }

  private func take(_ record: TopicRecord, _ next: UInt64, lowest: UInt64) {
    let offset = record.offset
    if record.string != "\(offset)" { notesSoFar.note("\(record.string) came at offset \(offset)") }
    if offset < next { notesSoFar.note("\(offset) came instead of \(next)") }
    if offset > next {
      notesSoFar.count("trimmed away")
      if offset > asked {
        notesSoFar.note("\(next) to \(offset - 1) are missing, and no trim was beyond \(asked)")
      }
    }
    if offset < lowest {
      notesSoFar.note("a new subscription begins at \(offset), and \(lowest) is the floor")
    }
    if isQuiet, offset < trimmed { notesSoFar.note("\(offset) came long after the trim to \(trimmed)") }
  }

  private func trim(before offset: UInt64) {
    guard !isTrimming else { return }
    isTrimming = true
    asked = max(asked, offset)
    // Pretends that the trim was made.
    if flaw == .forgetsTrim { return loop.execute { [self] in trimEnded(offset) } }
    cluster.pick(clients).trimTopic(Self.topic, before: offset) { [self] result in
      if case .success = result { return trimEnded(offset) }
      isTrimming = false
      if isFinishing { later(.milliseconds(200)) { $0.finishTrimming() } }
    }
  }

  private func trimEnded(_ offset: UInt64) {
    isTrimming = false
    trimmed = max(trimmed, offset)
    notesSoFar.count("trim")
    guard isFinishing else { return }
    guard offset == UInt64(producer.sent) - 2 else { return finishTrimming() }
    later(Self.patience) { load in
      load.isQuiet = true
      for reader in load.readers { reader.request(.unlimited) }
    }
  }

  private func later(_ time: Duration, _ body: @escaping @Sendable (TrimLoad) -> Void) {
    loop.execute { [self] in _ = loop.schedule(after: time) { [self] in body(self) } }
  }

  func act() {
    producer.publish(cluster.world.random.next(in: 0...10))
    for reader in readers where cluster.world.random.oneIn(2) {
      reader.request(.max(cluster.world.random.next(in: 1...4)))
    }
    if cluster.world.random.oneIn(3) { read(cluster.pick(clients)) }
    if producer.acknowledged > 0, cluster.world.random.oneIn(2) {
      trim(before: UInt64(cluster.world.random.next(in: 0...producer.acknowledged)))
    }
  }

  func finish() {
    isFinishing = true
    producer.publish(5)
    finishTrimming()
  }

  private func finishTrimming() {
    guard producer.isDone else {
      later(.milliseconds(200)) { $0.finishTrimming() }
      return
    }
    trim(before: UInt64(producer.sent) - 2)
  }

  func begin() {
    // The next owner has the floor.
    for client in clients {
      read(client)
      readers.last?.request(.unlimited)
    }
    producer.publish(2)
  }

  func leave() { for reader in readers { reader.cancel() } }

  var isDone: Bool {
    producer.isDone && isQuiet
      && readers.allSatisfy { $0.offsets.last == UInt64(producer.sent) - 1 || $0.completion != nil }
  }

  var notes: LoadNotes {
    var notes = notesSoFar
    for problem in producer.problems { notes.note(problem) }
    for reader in readers {
      if let completion = reader.completion { notes.note("a subscription has ended: \(completion)") }
    }
    return notes
  }

  var open: String {
    "trims: \(producer.acknowledged) of \(producer.sent) published, trimmed to \(trimmed), last read \(readers.map { $0.offsets.last.map { "\($0)" } ?? "none" })"
  }
}
