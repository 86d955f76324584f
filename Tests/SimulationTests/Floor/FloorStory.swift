import SluiceIO
import SluiceSimulation
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// A random history of one topic, made from a seed: records are published, trimmed, limited and expire, the broker restarts, and readers of all kinds
/// subscribe.
final class FloorStory {
  private(set) var failures: [String] = []
  private(set) var lines: [String] = []
  private let world: FloorWorld
  private var random: SeededRandom
  private var model: FloorModel
  private let flaw: FloorFlaw?
  private let settings: TopicSettings

  /// Durable cursors without a subscription, with their positions; see ``FloorModel/place(of:isOwed:)``.
  private var cursors: [String: ClosedRange<UInt64>] = [:]
  /// The group while it has no member: its frontier, and the deliveries before it that aren't done.
  private var group: (frontier: UInt64, undone: Set<UInt64>)?
  /// An attached subscription with little demand, and the offset at which it started.
  private var idle: (reader: FloorReader, start: UInt64)?
  /// The topic's epoch.
  private var epoch: UInt64 = 0
  /// The floor before a restart, until the next check of the floor.
  private var floorBeforeRestart: UInt64?

  init(seed: UInt64, flaw: FloorFlaw? = nil) throws {
    random = SeededRandom(seed: seed &* 0x9e6c_63d0_876a_68ee &+ 3)
    self.flaw = flaw
    settings = Self.settings(&random)
    world = try FloorWorld(seed: seed, brokerLoops: random.next(in: 1...2))
    model = FloorModel(settings)
  }

  private static func settings(_ random: inout SeededRandom) -> TopicSettings {
    var settings = limits(&random)
    switch random.next(below: 5) {
    case 0...1: settings.storage = .durable
    case 2: settings.compact = true
    case 3: (settings.compact, settings.storage) = (true, .durable)
    default: break
    }
    return settings
  }

  /// Random limits, lower or higher than the present ones, or none.
  private static func limits(_ random: inout SeededRandom) -> TopicSettings {
    var settings = TopicSettings()
    if random.oneIn(2) {
      settings.replayRecords = random.oneIn(3) ? TopicSettings.unlimited : random.next(below: 30)
    }
    if random.oneIn(3) {
      settings.replayBytes = random.oneIn(3) ? TopicSettings.unlimited : random.next(below: 2_000)
    }
    if random.oneIn(3) {
      settings.replayAge = random.oneIn(3) ? TopicSettings.unlimited : random.next(below: 4_000)
    }
    return settings
  }

  private var now: Int64 { world.world.wallClock }

  private func note(_ what: @autoclosure () -> String) {
    lines.append(
      "\(Chronicle.seconds(world.world.now)) \(what()) [head \(model.head), floor \(model.lowest)...\(model.highest)]"
    )
  }

  private func check(_ holds: Bool, _ what: @autoclosure () -> String) {
    guard !holds else { return }
    let what = what()
    note("WRONG: \(what)")
    failures.append(what)
  }

  // MARK: The story

  func run() throws {
    try world.create(settings)
    epoch = try world.info().summary.epoch
    note("a topic with \(settings)")
    for _ in 0..<random.next(in: 15...40) where failures.isEmpty { try step() }
    if failures.isEmpty { try checkFigures() }
    world.leave()
  }

  private func step() throws {
    switch random.next(below: 16) {
    case 0...4: publish()
    case 5: try trim()
    case 6...7: try set()
    case 8:
      world.settle(random.next(in: .milliseconds(10) ... .seconds(3)))
      look(isStart: false)
      note("time has passed")
    case 9: try restart()
    case 10: begin()
    case 11: goOn()
    case 12: useCursor()
    case 13: if settings.compact != true { join() }
    case 14: idle == nil ? attach() : catchUp()
    default: try checkFigures()
    }
  }

  // MARK: What happens to the topic

  private func publish() {
    let from = now
    var batch = BatchBuilder()
    var records: [(bytes: UInt64, key: String?, isDeletion: Bool)] = []
    for number in 0..<random.next(in: 1...12) {
      let before = batch.bytes.count
      let key = settings.compact == true ? "key \(random.next(below: 6))" : nil
      let isDeletion = key != nil && random.oneIn(8)
      var payload = isDeletion ? [] : Array("\(world.head + UInt64(number)) ".utf8)
      if !isDeletion { payload += [UInt8](repeating: 32, count: random.next(in: 0...100)) }
      payload.withUnsafeBytes { payload in
        guard let key else { return batch.append(payload) }
        Array(key.utf8).withUnsafeBytes { try? batch.append(key: $0, headers: [], payload: payload) }
      }
      records.append((UInt64(batch.bytes.count - before), key, isDeletion))
    }
    world.publish(batch, records.count)
    model.publish(records, from: from, to: now)
    note("published \(records.count)")
  }

  private func trim() throws {
    let limit: TopicTrim.Limit =
      switch random.next(below: 4) {
      case 0: .newest(0)
      case 1: .newest(random.next(below: 20))
      default: .from(random.next(below: model.head + 1))
      }
    let from = now
    try world.trim(limit)
    model.trim(limit, from: from, to: now)
    note("trimmed: \(limit)")
  }

  private func set() throws {
    let settings = Self.limits(&random)
    let from = now
    try world.ask(TopicSet(topic: FloorWorld.topic, settings: settings))
    model.set(settings, from: from, to: now)
    note("set \(settings)")
  }

  private func restart() throws {
    guard settings.storage == .durable else { return }
    // Positions of cursors and groups are stored shortly after they move.
    world.settle(.milliseconds(500))
    idle = nil
    look(isStart: false)
    floorBeforeRestart = model.highest
    try world.restart(inOrder: random.oneIn(2), after: random.next(in: .zero ... .seconds(5)))
    model.restart(at: now - 40)
    note("restarted")
  }

  private func look(isStart: Bool, since: Int64? = nil) {
    model.raise(from: since ?? now, to: now, isStart: isStart)
  }

  // MARK: Readers

  /// The start as passed to the oracle: unchanged, unless a fault is planted.
  private func shown(_ start: UInt64, wanting wanted: UInt64, _ isFlawed: Bool = false) -> UInt64 {
    switch flaw {
    case .largerLimitsBringBack: min(start, max(wanted, model.limitsAlone(at: now)))
    case .expiryWaitsForARound: floorBeforeRestart.map { min(start, max(wanted, $0)) } ?? start
    case .startsTooHigh: start < model.head ? start + 1 : start
    case nil: start
    default: isFlawed ? min(start, wanted) : start
    }
  }

  private func begin() {
    let head = model.head
    let start: Subscribe.Start =
      switch random.next(below: 6) {
      case 0: .new
      case 1: .last(random.next(below: 30))
      case 2: .offset(random.next(below: head + 1))
      case 3 where settings.compact != true: .time(now - Int64(random.next(below: 4_000)))
      default: .earliest
      }
    let since = now
    let reader = FloorReader(world, FloorReader.subscribe(start))
    look(isStart: true, since: since)
    if case .offset(let wanted) = start {
      check(reader, wanting: wanted...wanted, in: model.start(start), "a subscriber at \(start)")
    } else {
      check(reader, wanting: nil, in: model.start(start), "a subscriber at \(start)")
    }
    reader.leave()
  }

  /// Checks a late reader's start, its reported losses, and its records.
  ///
  /// - Parameter wanted: the requested offset, as far as it is known; nil for a reader that requests all records.
  private func check(
    _ reader: FloorReader, wanting wanted: ClosedRange<UInt64>?, in range: ClosedRange<UInt64>, _ who: String,
    _ isFlawed: Bool = false
  ) {
    guard let subscribed = reader.subscribed else { return check(false, "\(who) isn't served") }
    let start = shown(subscribed.nextOffset, wanting: wanted?.lowerBound ?? 0, isFlawed)
    floorBeforeRestart = nil
    note("\(who) begins at \(start)")
    check(range.contains(start), "\(who) begins at \(start), where \(range) is right")
    let missed = reader.lags.map(\.missed).reduce(0, +)
    let next = subscribed.nextOffset
    let told =
      wanted.map { (next - min($0.upperBound, next))...(next - min($0.lowerBound, next)) } ?? 0...0
    let offsets = reader.offsets
    // In a stored topic records may expire between SUBSCRIBED and the first delivery.
    let cut = missed - min(told.upperBound, missed)
    let isCut = model.dropsBatches && cut > 0 && next + cut <= model.highest
    let first = isCut ? next + cut : next
    check(told.contains(missed) || isCut, "\(who) is told that \(missed) are gone, where \(told) are")
    let expected = model.isCompact ? model.newest(from: first) : Array(min(first, model.head)..<model.head)
    check(offsets == expected, "\(who) from \(first) gets \(offsets), where \(expected) is right")
  }

  /// Resumes a subscription after a lost connection: perhaps below the limits, but never below a trim.
  private func goOn() {
    let wanted = random.next(below: model.head + 1)
    let reader = FloorReader(world, FloorReader.subscribe(.offset(wanted), epoch: epoch))
    look(isStart: false)
    guard let subscribed = reader.subscribed else {
      return check(false, "a returning subscriber isn't served")
    }
    let start = flaw == .returningIgnoresTrims ? wanted : subscribed.nextOffset
    note("a subscriber returns to \(wanted) and begins at \(start)")
    let range = max(wanted, model.trimmedTo)...max(wanted, model.highest)
    check(
      range.contains(start),
      "a subscriber that returns to \(wanted) begins at \(start), where \(range) is right")
    let offsets = reader.offsets
    if model.isCompact {
      check(offsets.allSatisfy { $0 >= start }, "a subscriber that returns to \(start) gets \(offsets)")
      let owed = Set(model.newest(from: max(start, model.highest)))
      check(
        owed.isSubset(of: offsets),
        "a subscriber that returns to \(start) gets \(offsets), and is owed \(owed.sorted())")
    } else {
      check(
        offsets == Array(min(start, model.head)..<model.head),
        "a subscriber that returns to \(start) gets \(offsets)")
    }
    reader.leave()
  }

  private func useCursor() {
    let name = "cursor-\(random.next(below: 3))"
    let since = now
    let granted = random.oneIn(3) ? Credit.unlimited : random.next(below: 12)
    let reader = FloorReader(world, FloorReader.subscribe(cursor: name, granted: granted))
    look(isStart: true, since: since)
    let place = cursors[name]
    let (who, isFlawed) = ("\(name) at \(place as Any)", flaw == .cursorsIgnoreTheFloor)
    let range = place.map(model.start(at:)) ?? model.start(.earliest)
    if granted == Credit.unlimited {
      check(reader, wanting: place, in: range, who, isFlawed)
    } else if let subscribed = reader.subscribed {
      let start = shown(subscribed.nextOffset, wanting: place?.lowerBound ?? 0, isFlawed)
      floorBeforeRestart = nil
      note("\(name) begins at \(start)")
      check(range.contains(start), "\(who) begins at \(start), where \(range) is right")
    }
    let offsets = reader.offsets
    let next = offsets.last.map { $0 + 1 } ?? reader.subscribed?.nextOffset ?? 0
    let commits = !random.oneIn(3)
    if commits { reader.commit(next) }
    if !commits, let first = offsets.first {
      cursors[name] = first...first
    } else {
      cursors[name] = model.place(of: next, isOwed: UInt64(offsets.count) == granted)
    }
    reader.leave()
  }

  private func join() {
    let since = now
    let reader = FloorReader(
      world,
      joining: JoinGroup(
        topic: FloorWorld.topic, group: "group", start: .earliest,
        settings: JoinGroup.Settings(acknowledgement: .explicit), grantedThrough: Credit.unlimited))
    look(isStart: true, since: since)
    floorBeforeRestart = nil
    let head = model.head
    func owed(_ floor: UInt64) -> Set<UInt64> {
      guard let group else { return Set(min(floor, head)..<head) }
      return Set(min(max(group.frontier, floor), head)..<head).union(group.undone.filter { $0 >= floor })
    }
    let deliveries = reader.deliveries
    var got = Set(deliveries.keys)
    if flaw == .groupsIgnoreTheFloor { got = owed(0) }
    note("a member gets \(got.sorted())")
    check(
      got.isSubset(of: owed(model.lowest)) && owed(model.highest).isSubset(of: got),
      "a member gets \(got.sorted()), where \(owed(model.highest).sorted()) is right, or all of \(owed(model.lowest).sorted())"
    )
    if group != nil {
      let missed = reader.lags.map(\.missed).reduce(0, +)
      check(
        missed == owed(0).count - deliveries.count,
        "a member is told that \(missed) are gone, and gets \(got.sorted())")
    }
    var undone = Set(deliveries.keys)
    for (offset, delivery) in deliveries.sorted(by: { $0.key < $1.key }) where random.oneIn(2) {
      reader.settle(.acknowledge, offset, delivery: delivery)
      undone.remove(offset)
    }
    group = (head, undone)
    reader.leave()
  }

  /// Opens a subscription with little demand, and keeps it.
  private func attach() {
    let since = now
    let reader = FloorReader(world, FloorReader.subscribe(granted: random.next(below: 5)))
    look(isStart: true, since: since)
    guard let subscribed = reader.subscribed else { return check(false, "a subscriber isn't served") }
    floorBeforeRestart = nil
    idle = (reader, subscribed.nextOffset)
    note("a subscriber stays that has begun at \(subscribed.nextOffset)")
  }

  /// Grants that subscription unlimited demand: it must not get records that were trimmed meanwhile.
  private func catchUp() {
    guard let (reader, start) = idle else { return }
    idle = nil
    let next = reader.offsets.last.map { $0 + 1 } ?? start
    look(isStart: false)
    let topic = world.broker.core.registry.find(FloorWorld.topic)
    let lags = topic?.loopStates.flatMap(\.subscriptions).compactMap(\.standing?.lag) ?? []
    let head = model.head
    let most = head - min(max(next, model.trimmedTo), head)
    // In a compacted topic it may have skipped replaced records.
    let least = model.isCompact ? 0 : head - min(max(next, model.highest), head)
    check(
      lags.allSatisfy { (least...most).contains($0) },
      "a subscriber at \(next) is behind by \(lags), where \(least)...\(most) is right")
    let before = reader.offsets.count
    reader.grant(Credit.unlimited)
    let offsets = Array(reader.offsets.dropFirst(before))
    note("the subscriber at \(next) gets \(offsets)")
    let first = max(next, model.trimmedTo)
    check(
      offsets.allSatisfy { $0 >= first },
      "a subscriber at \(next) gets \(offsets), where \(model.trimmedTo) is the first that isn't trimmed")
    if model.isCompact {
      let owed = Set(model.newest(from: max(next, model.highest)))
      check(
        owed.isSubset(of: offsets), "a subscriber at \(next) gets \(offsets), and is owed \(owed.sorted())")
    } else {
      let start = offsets.first ?? head
      check(start <= max(next, model.highest), "a subscriber at \(next) gets \(offsets), and more is kept")
      check(offsets == Array(min(start, head)..<head), "a subscriber at \(next) gets \(offsets), with gaps")
    }
    reader.leave()
  }

  // MARK: Figures

  private func checkFigures() throws {
    let since = now
    let infos = try world.cursors()
    let info = try world.info()
    look(isStart: false, since: since)
    var places = cursors
    if let group {
      let place = group.undone.min().map { min($0, group.frontier) } ?? group.frontier
      places["group"] = place...place
    }
    note("figures: \(infos.map { "\($0.name) \($0.nextOffset)" }), first \(info.summary.firstOffset)")
    for (name, place) in places {
      let right = model.lag(from: place)
      guard let found = infos.first(where: { $0.name == name }) else {
        check(false, "\(name) isn't listed")
        continue
      }
      var lag = found.end - found.nextOffset
      if flaw == .lagCountsWhatIsGone { lag = model.head - place.lowerBound }
      if flaw == .cursorsPassWhatIsOwed { lag -= min(lag, 1) }
      check(right.contains(lag), "\(name) at \(place) is behind by \(lag), where \(right) is right")
      for consumer in info.consumers where consumer.name == name {
        check(
          right.contains(consumer.lag), "\(name) at \(place) lags by \(consumer.lag), where \(right) is right"
        )
        check(
          consumer.lag > 0 || consumer.bytes == 0 && consumer.age == 0,
          "\(name) has every record and a backlog")
      }
    }
    let first = model.start(.earliest)
    check(
      first.contains(info.summary.firstOffset),
      "the first record is \(info.summary.firstOffset), where \(first) is right")
    if !model.isCompact {
      check(
        info.summary.records == model.head - info.summary.firstOffset,
        "\(info.summary.records) records are counted")
    }
  }
}
