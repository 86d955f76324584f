import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceSimulation

/// Members of a group that acknowledge each record, at once or later, retry some, and leave with others.
///
/// The oracle: a record comes again until it is acknowledged, and never again once the engine has stored that it was; and a
/// retry that is stored comes at its time.
// @unchecked: one thread uses it.
final class GroupLoad: StoryLoad, @unchecked Sendable {
  private static let name = "workers"
  /// How long a delivery to one member may still arrive after another member's acknowledgement was stored: as long as a relaying node may be stalled, or a
  /// short time once the faults have ended.
  private static let underWay = (stalled: Duration.seconds(7), whole: Duration.milliseconds(500))

  private unowned let cluster: WholeCluster
  private let producer: NumberedProducer
  private let clients: [Client]
  private let flaw: LoadFlaw?
  private let options: GroupOptions
  private var delays: SeededRandom
  private let clockStart: Int64
  private var members: [AnyCancellable?] = []
  private var held: [(member: Int, delivery: Delivery)] = []
  /// The time at which the faults ended.
  private var end: MonotonicTime?
  /// The number of deliveries of each record.
  private var deliveries: [Int: Int] = [:]
  private(set) var notes = LoadNotes("group")

  init(_ cluster: WholeCluster, _ producer: NumberedProducer, _ clients: [Client], flaw: LoadFlaw?) {
    self.cluster = cluster
    self.producer = producer
    self.clients = clients
    self.flaw = flaw
    clockStart = Self.clockStart(cluster.world)
    // Apart, so that stories stay the same.
    delays = SeededRandom(seed: cluster.world.seed &* 0x2545_f491)
    options = GroupOptions(
      acknowledgement: .explicit, deadline: cluster.pick([nil, .seconds(2)]),
      retryBackoff: delays.oneIn(2) ? .milliseconds(500) ... .seconds(3) : nil)
    cluster.stored.watch(Self.name)
    for index in 0..<2 {
      members.append(nil)
      join(index)
    }
  }

  private func join(_ index: Int) {
    let wasStored = cluster.stored.isThere(Self.name)
    members[index] = cluster.pick(clients).group(
      Self.name, of: producer.topic, options: options, from: .earliest
    ).sink { [unowned self] completion in
      ended(index, completion, wasStored: wasStored)
    } receiveValue: { [unowned self] in
      take($0, as: index)
    }
  }

  private func ended(
    _ index: Int, _ completion: Subscribers.Completion<ClientError>, wasStored: Bool
  ) {
    // A group can't be created while the engine is unreachable. Another member may have created it before this one gets the reply.
    if case .failure(let error) = completion, error.code == .storageFailed, !wasStored { return join(index) }
    notes.note("member \(index) has ended: \(completion)")
  }

  private func take(_ delivery: Delivery, as member: Int) {
    let offset = delivery.record.offset
    if delivery.record.string != "\(offset)" || offset >= UInt64(producer.sent) {
      notes.note("\(delivery.record.string) came at offset \(offset) of \(producer.sent)")
    }
    if let time = cluster.stored.doneTime(of: offset, in: Self.name),
      time + (isWhole ? Self.underWay.whole : Self.underWay.stalled) < cluster.world.now
    {
      notes.note("\(offset) came again (delivery \(delivery.count)), and is stored as done with")
    }
    checkTime(of: delivery)
    deliveries[Int(offset), default: 0] += 1
    if deliveries[Int(offset)]! > 1 { notes.count("delivered again") }
    if end != nil { return settle(delivery) }
    switch cluster.world.random.next(in: 0...9) {
    case 0:
      delivery.retry(after: delays.oneIn(2) ? nil : delays.next(in: .zero ... .seconds(5)))
      notes.count("retried")
    case 1...3: held.append((member, delivery))
    default: settle(delivery)
    }
  }

  /// Delays are those of the wall clock only while it isn't set.
  private func checkTime(of delivery: Delivery) {
    let (offset, time) = (delivery.record.offset, cluster.world.wallClock)
    guard clockStart == Self.clockStart(cluster.world),
      let retry = cluster.stored.retryTime(of: offset, delivery: delivery.count, in: Self.name),
      time + 1 < retry
    else { return }
    notes.note("\(offset) came again (delivery \(delivery.count)) \(retry - time) ms before its time")
  }

  /// The wall clock's time at the start of the run, by its current setting.
  private static func clockStart(_ world: SimulatedWorld) -> Int64 {
    world.wallClock - Int64(world.now.nanoseconds / 1_000_000)
  }

  /// Whether the faults have ended, and the deliveries that they delayed have arrived.
  private var isWhole: Bool { end.map { $0 + .seconds(1) < cluster.world.now } ?? false }

  private func settle(_ delivery: Delivery) {
    notes.count("acknowledged")
    if flaw == .retriesForAcknowledging, delivery.record.offset % 5 == 3 {
      return delivery.retry(after: .zero)
    }
    delivery.acknowledge()
  }

  func act() {
    let index = cluster.world.random.next(in: 0...(members.count - 1))
    switch cluster.world.random.next(in: 0...3) {
    case 0:
      // Leaves with unacknowledged records.
      members[index] = nil
      held.removeAll { $0.member == index }
      join(index)
      notes.count("left")
    case 1: break
    default: settleHeld()
    }
  }

  private func settleHeld() {
    for (_, delivery) in held { settle(delivery) }
    held = []
  }

  func finish() {
    end = cluster.world.now
    settleHeld()
  }

  /// All of its members leave, and new ones join.
  func begin() {
    for index in members.indices { join(index) }
  }

  func leave() { members = [] }

  var isDone: Bool {
    cluster.stored.isAllDone(in: Self.name, through: producer.sent) && deliveries.count == producer.sent
  }

  var open: String {
    "group: \(deliveries.count) of \(producer.sent) have come, stored \(cluster.stored.summary(of: Self.name))"
  }
}
