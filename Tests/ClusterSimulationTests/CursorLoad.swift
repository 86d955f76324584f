import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceSimulation

/// A subscriber with a durable cursor that commits some records and resubscribes at times, perhaps at another node.
///
/// The oracle: a subscription starts at or before the committed position, so that no record is missing, and not before the position stored in the engine.
/// Within a subscription, no record is missing or duplicated.
// @unchecked: used by one thread.
final class CursorLoad: StoryLoad, @unchecked Sendable {
  private static let name = "reader"

  private unowned let cluster: WholeCluster
  private let producer: NumberedProducer
  private let clients: [Client]
  private let flaw: LoadFlaw?
  private var subscription: AnyCancellable?
  /// Incremented by each subscription.
  private var life = 0
  /// The offset after the last committed record.
  private var committed = 0
  /// The next record of this subscription; nil before the first.
  private var next: Int?
  /// The lowest offset at which a new subscription may start.
  private var stored = 0
  private var last: TopicRecord?
  private var isFinishing = false
  private(set) var notes = LoadNotes("cursor")

  init(_ cluster: WholeCluster, _ producer: NumberedProducer, _ clients: [Client], flaw: LoadFlaw?) {
    self.cluster = cluster
    self.producer = producer
    self.clients = clients
    self.flaw = flaw
    cluster.stored.watch(Self.name)
    subscribe()
  }

  private func subscribe() {
    let wasStored = cluster.stored.isThere(Self.name)
    life += 1
    (next, last) = (nil, nil)
    stored = Int(cluster.stored.place(of: Self.name))
    let life = life
    let former = subscription
    subscription = cluster.pick(clients).topic(
      producer.topic, from: .earliest, cursor: .init(Self.name, commit: .manual)
    ).sink { [unowned self] completion in
      // The next subscription takes over the cursor.
      if life == self.life { ended(completion, wasStored: wasStored) }
    } receiveValue: { [unowned self] record in
      if life == self.life { take(record) }
    }
    former?.cancel()
  }

  private func ended(_ completion: Subscribers.Completion<ClientError>, wasStored: Bool) {
    if case .failure(let error) = completion {
      // Frames of the former subscription may arrive after this one's, through another node.
      if error.code == .cursorTaken { return subscribe() }
      // A cursor can't be created while the engine is unreachable.
      if error.code == .storageFailed, !wasStored { return subscribe() }
    }
    notes.note("the subscription has ended: \(completion)")
  }

  private func take(_ record: TopicRecord) {
    let offset = Int(record.offset)
    if record.string != "\(offset)" { notes.note("\(record.string) came at offset \(offset)") }
    if let next {
      if offset != next { notes.note("\(offset) came instead of \(next)") }
    } else {
      notes.count("resumed")
      if offset > committed { notes.note("begins at \(offset), and \(committed) wasn't committed") }
      if offset < stored { notes.note("begins at \(offset), and \(stored) was stored") }
    }
    next = offset + 1
    last = record
    if isFinishing || cluster.world.random.oneIn(3) { commit(record) }
  }

  private func commit(_ record: TopicRecord) {
    notes.count("committed")
    record.commit()
    committed = max(committed, Int(record.offset) + 1)
    // Pretends that the last two records weren't committed.
    if flaw == .commitsAhead { committed = max(committed - 2, 0) }
  }

  func act() {
    if cluster.world.random.oneIn(2) { subscribe() }
  }

  func finish() {
    isFinishing = true
    if let last { commit(last) }
  }

  func begin() { subscribe() }

  func leave() { subscription = nil }

  var isDone: Bool {
    // A subscription that starts after the last record gets nothing.
    cluster.stored.place(of: Self.name) == UInt64(producer.sent) && (next ?? committed) == producer.sent
  }

  var open: String {
    "cursor: \(next.map { "\($0)" } ?? "nothing") is next, \(committed) of \(producer.sent) committed, stored \(cluster.stored.place(of: Self.name))"
  }
}
