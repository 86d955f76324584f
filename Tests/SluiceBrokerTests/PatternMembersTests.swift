import SluiceTopics
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker

/// A topic joined by a subscription to a pattern, without a broker.
private final class JoinedProbe: JoinedTopic {
  let name: String
  let number: UInt32
  var place = SubscriberPlace.none
  var isBehind = false
  var begins: UInt64 = 0
  var pacedIndex: Int?

  init(_ name: String, _ number: UInt32, begins: UInt64 = 0) {
    (self.name, self.number, self.begins) = (name, number, begins)
  }

  func leave() { place = .ended }

  var hasLeft: Bool { if case .ended = place { true } else { false } }
}

/// The calls of `PatternStream` on its members.
private struct Joining {
  let members = PatternMembers<JoinedProbe>()
  var last: UInt32 = 0

  mutating func join(_ name: String, begins: UInt64 = 0) -> JoinedProbe {
    last += 1
    let probe = JoinedProbe(name, last, begins: begins)
    members.add(probe)
    return probe
  }

  func wake(_ probe: JoinedProbe) {
    guard case .none = probe.place else { return }
    probe.place = .ready
    members.turns.append(probe)
  }

  /// Adds a member whose topic's producers are paced. Returns whether that is new.
  func pace(_ probe: JoinedProbe) -> Bool { members.paced.add(probe) }

  /// Returns whether a turn of grant updates is needed.
  func beginTelling() -> Bool { members.paced.beginTelling() }

  /// Returns whether another turn of grant updates is needed.
  func goesOnTelling() -> Bool { members.paced.goesOnTelling() }

  func leave(_ probe: JoinedProbe) -> JoinedProbe? {
    _ = members.remove(probe)
    return members.release(probe)
  }

  /// The names of the members that get turns, until none does.
  func turns(available: UInt64 = 9, written: UInt64? = nil) -> [String] {
    var names: [String] = []
    while true {
      switch members.turns.next(available: available, written: written) {
      case .member(let probe, _):
        probe.place = .none
        names.append(probe.name)
      case .passedOver: continue
      case .none: return names
      }
    }
  }

  /// Passes the grant to up to `count` paced members. Returns their names.
  func tell(_ count: Int) -> [String] {
    var names: [String] = []
    while names.count < count, members.paced.hasMoreToTell { names.append(members.paced.nextToTell().name) }
    return names
  }
}

@Suite("which topics a pattern's subscription has joined, and which of them are next")
struct PatternMembersTests {
  private var joining = Joining()

  // MARK: Names

  @Test("a topic that is joined again takes its former member's place, which can't be taken out any more")
  mutating func again() {
    let former = joining.join("a")
    let other = joining.join("b")
    let members = joining.members
    let next = joining.join("a")
    #expect(members.count == 2)
    #expect(members["a"] === next && members["b"] === other && members["c"] == nil)
    #expect(!members.remove(former))
    #expect(members["a"] === next)
    #expect(members.remove(next))
    #expect(!members.remove(next))
    #expect(members["a"] == nil && members.count == 1)
  }

  @Test(
    "members are sorted by their numbers, and taken in the order in which they have joined, without those that have left"
  )
  mutating func order() {
    let probes = (0..<20).map { joining.join("\(19 - $0)") }
    for index in [0, 7, 19] { #expect(joining.leave(probes[index]) == nil) }
    let left = probes.filter { !$0.hasLeft }
    #expect(left.count == 17)
    #expect(joining.members.sorted.map(\.number) == left.map(\.number))
    #expect(joining.members.takeAll().map(\.number) == left.map(\.number))
  }

  @Test("a former member that leaves when its successor has joined isn't told of at the end")
  mutating func successor() {
    let former = joining.join("a")
    _ = joining.members.release(former)
    let next = joining.join("a")
    #expect(former.hasLeft && !next.hasLeft)
    #expect(joining.members.takeAll().map(\.number) == [next.number])
  }

  @Test("the subscription is behind as long as one of its members is")
  mutating func behind() {
    let (first, second) = (joining.join("a"), joining.join("b"))
    #expect(!joining.members.isBehind)
    second.isBehind = true
    #expect(joining.members.isBehind)
    _ = joining.leave(second)
    #expect(!joining.members.isBehind)
    first.isBehind = true
    #expect(joining.members.isBehind)
  }

  // MARK: Turns

  @Test("a member that has left gets no turn, and one that joins later gets its own")
  mutating func noTurn() {
    let probes = ["a", "b", "c"].map { joining.join($0) }
    for probe in probes { joining.wake(probe) }
    // It has left its topic by then, or is about to.
    _ = joining.leave(probes[1])
    joining.wake(joining.join("b"))
    #expect(joining.turns() == ["a", "c", "b"])
    #expect(joining.members.turns.count == 0)
  }

  @Test("without demand only those have turns that weren't refused demand before; with it these are first")
  mutating func demand() {
    let (first, second) = (joining.join("a"), joining.join("b"))
    first.place = .ready
    joining.members.turns.demandExhausted(first)
    joining.wake(second)
    #expect(joining.turns(available: 0) == ["b"])
    #expect(!joining.members.turns.isTurn(available: 0))
    #expect(joining.members.turns.isTurn(available: 1))
    joining.wake(second)
    #expect(joining.turns(available: 1) == ["a", "b"])
  }

  @Test("a member waits for the frames of the node that served its topic before, and for no others")
  mutating func frames() {
    for (name, begins) in [("a", 3), ("b", 0), ("c", 5)] as [(String, UInt64)] {
      joining.wake(joining.join(name, begins: begins))
    }
    #expect(joining.turns(written: 2) == ["b"])
    joining.members.turns.goOn(2)
    #expect(joining.turns(written: 2) == [])
    joining.members.turns.goOn(3)
    #expect(joining.turns(written: 3) == ["a"])
    joining.members.turns.goOn(9)
    #expect(joining.turns(written: 9) == ["c"])
  }

  @Test("a member that leaves while it waits for frames gets no turn when they are written")
  mutating func leavesWaiting() {
    let (first, second) = (joining.join("a", begins: 3), joining.join("b", begins: 3))
    joining.wake(first)
    joining.wake(second)
    #expect(joining.turns(written: 1) == [])
    _ = joining.leave(first)
    joining.members.turns.goOn(3)
    #expect(joining.members.turns.count == 1)
    #expect(joining.turns(written: 3) == ["b"])
  }

  // MARK: Paced topics

  @Test("a grant is told to each paced member once, over several turns; a new grant begins anew")
  mutating func telling() {
    let probes = ["a", "b", "c"].map { joining.join($0) }
    let members = joining.members
    #expect(members.paced.isEmpty)
    #expect(probes.map(joining.pace) == [true, true, true])
    #expect(!joining.pace(probes[1]))
    #expect(joining.beginTelling())
    #expect(joining.tell(2) == ["a", "b"])
    #expect(joining.goesOnTelling())
    // A turn is scheduled already.
    #expect(!joining.beginTelling())
    #expect(joining.tell(9) == ["a", "b", "c"])
    #expect(!joining.goesOnTelling())
    #expect(joining.beginTelling())
  }

  @Test(
    "when a paced member leaves, the one that takes its place is told by the caller, if the grant is past it",
    arguments: [
      (told: 0, leaves: 0, owed: nil, rest: ["d", "b", "c"]),
      (told: 1, leaves: 0, owed: "d", rest: ["b", "c"]),
      (told: 2, leaves: 0, owed: "d", rest: ["c"]),
      (told: 2, leaves: 2, owed: nil, rest: ["d"]),
      (told: 1, leaves: 3, owed: nil, rest: ["b", "c"]),
      (told: 3, leaves: 2, owed: "d", rest: []),
    ] as [(told: Int, leaves: Int, owed: String?, rest: [String])])
  mutating func leavesWhileTold(told: Int, leaves: Int, owed: String?, rest: [String]) {
    let probes = ["a", "b", "c", "d"].map { joining.join($0) }
    for probe in probes { _ = joining.members.paced.add(probe) }
    _ = joining.members.paced.beginTelling()
    _ = joining.tell(told)
    _ = joining.members.paced.goesOnTelling()
    #expect(joining.leave(probes[leaves])?.name == owed)
    #expect(joining.tell(9) == rest)
  }

  @Test("nothing is owed when no grant is being told, nor for a member whose topic isn't paced")
  mutating func notTelling() {
    let probes = ["a", "b", "c"].map { joining.join($0) }
    for probe in probes.prefix(2) { _ = joining.members.paced.add(probe) }
    _ = joining.members.paced.beginTelling()
    _ = joining.tell(2)
    _ = joining.members.paced.goesOnTelling()
    #expect(joining.leave(probes[2]) == nil)
    #expect(joining.leave(probes[0]) == nil)
    #expect(joining.leave(probes[1]) == nil)
    #expect(joining.members.paced.isEmpty)
  }

  // MARK: Memory

  @Test("members that have left are let go, also those that had turns to come")
  mutating func memory() {
    struct Watch { weak var probe: JoinedProbe? }
    var watches: [Watch] = []
    for index in 0..<1_000 {
      let probe = joining.join("\(index)")
      watches.append(Watch(probe: probe))
      probe.place = .ready
      if index % 2 == 0 {
        joining.members.turns.demandExhausted(probe)
      } else {
        joining.members.turns.append(probe)
      }
    }
    for index in 0..<990 { _ = joining.leave(joining.members["\(index)"]!) }
    // The present members, and some in each list.
    #expect(watches.count { $0.probe != nil } < 10 + 2 * 10 + 64 + 65 + 10)
    #expect(joining.turns().count == 10)
    #expect(joining.members.takeAll().count == 10)
    #expect(watches.count { $0.probe != nil } == 10)
  }
}

/// Random calls, and the invariants in any order.
@Suite("a pattern's members under any sequence of calls")
struct PatternMembersModelTests {
  /// The expected state, as plain lists.
  private struct Model {
    var there: [JoinedProbe] = []
    /// Woken members without a turn since.
    var woken: Set<UInt32> = []
    var paced: Set<UInt32> = []
    /// Paced members that haven't received the last grant.
    var untold: Set<UInt32> = []
    var written: UInt64 = 0
  }

  private var joining = Joining()
  private var model = Model()
  private var random = SeededRandom.printed()

  @Test("each woken member gets one turn, each paced member hears of the last grant, none that has left does")
  mutating func any() {
    for _ in 0..<300 {
      (joining, model) = (Joining(), Model())
      for _ in 0..<(50 + random.next() % 400) { step() }
      finish()
    }
  }

  private mutating func step() {
    switch random.next() % 9 {
    case 0, 1: join()
    case 2: if let probe = model.there.randomElement(using: &random) { leave(probe) }
    case 3, 4: if let probe = model.there.randomElement(using: &random) { wake(probe) }
    case 5: turn(available: random.next() % 3)
    case 6:
      if let probe = model.there.randomElement(using: &random) {
        let isNew = model.paced.insert(probe.number).inserted
        #expect(joining.pace(probe) == isNew)
      }
    case 7:
      _ = joining.members.paced.beginTelling()
      model.untold = model.paced
    default:
      tell(Int(random.next() % 4))
      model.written += random.next() % 2
      joining.members.turns.goOn(model.written)
    }
    check()
  }

  private mutating func join() {
    let name = "\(random.next() % 40)"
    let former = joining.members[name]
    if let former {
      // As when a topic restarts.
      told(joining.members.release(former))
      forget(former)
    }
    model.there.append(joining.join(name, begins: model.written + random.next() % 3))
    wake(model.there.last!)
  }

  private mutating func leave(_ probe: JoinedProbe) {
    #expect(joining.members.remove(probe))
    told(joining.members.release(probe))
    forget(probe)
  }

  private mutating func forget(_ probe: JoinedProbe) {
    model.there.removeAll { $0 === probe }
    model.woken.remove(probe.number)
    model.paced.remove(probe.number)
    model.untold.remove(probe.number)
  }

  private mutating func wake(_ probe: JoinedProbe) {
    joining.wake(probe)
    model.woken.insert(probe.number)
  }

  private mutating func turn(available: UInt64) {
    guard
      case .member(let probe, let share) = joining.members.turns.next(
        available: available, written: model.written)
    else { return }
    #expect(!probe.hasLeft && probe.begins <= model.written && share <= available)
    #expect(model.woken.contains(probe.number))
    if available == 0 || random.next() % 3 == 0 {
      // It has records, but there was not enough demand.
      joining.members.turns.demandExhausted(probe)
    } else {
      probe.place = .none
      model.woken.remove(probe.number)
    }
  }

  private mutating func tell(_ count: Int) {
    for _ in 0..<count where joining.members.paced.hasMoreToTell { told(joining.members.paced.nextToTell()) }
    _ = joining.members.paced.goesOnTelling()
  }

  private mutating func told(_ probe: JoinedProbe?) {
    guard let probe else { return }
    #expect(!probe.hasLeft)
    model.untold.remove(probe.number)
  }

  private func check() {
    let members = joining.members
    #expect(members.count == model.there.count)
    for probe in model.there { #expect(members[probe.name] === probe) }
  }

  private mutating func finish() {
    while joining.members.paced.hasMoreToTell { told(joining.members.paced.nextToTell()) }
    #expect(model.untold == [])
    model.written = .max
    joining.members.turns.goOn(model.written)
    var turns = 0
    while joining.members.turns.isTurn(available: 9) {
      guard case .member(let probe, _) = joining.members.turns.next(available: 9, written: model.written)
      else { continue }
      let isWoken = model.woken.remove(probe.number) != nil
      #expect(isWoken)
      probe.place = .none
      turns += 1
    }
    #expect(model.woken == [], "\(turns) turns")
    #expect(joining.members.takeAll().map(\.number) == model.there.map(\.number))
  }
}
