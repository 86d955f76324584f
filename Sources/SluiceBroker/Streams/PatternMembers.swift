import SluiceTopics
import SluiceWire

/// The topics that a subscription to a pattern has joined, and which of them have something to do. An object that is made with the first one: of many
/// subscriptions no topic is there yet.
final class PatternMembers {
  /// By name. A member is for one epoch of its topic.
  private var byName = ShortTable<String, PatternMember>()
  /// All of them in the order in which they have joined, and some that have left.
  private var joined: [PatternMember] = []
  var paced = PacedMembers()
  @safe @exclusivity(unchecked) var turns = PatternTurns()

  var count: Int { byName.count }

  subscript(name: String) -> PatternMember? { byName[name] }

  /// In the order of their numbers.
  var sorted: [PatternMember] { byName.values.sorted { $0.number < $1.number } }

  var isBehind: Bool { byName.values.contains { $0.subscription.isBehind } }

  /// Adds a member, in the place of another one of its topic's name.
  func add(_ member: PatternMember) {
    byName[member.topic.name] = member
    joined.append(member)
  }

  /// Takes out a member, unless another one has its name. Returns whether it was there.
  func remove(_ member: PatternMember) -> Bool {
    guard byName[member.topic.name] === member else { return false }
    byName[member.topic.name] = nil
    return true
  }

  /// Gives up a member's place in its topic.
  ///
  /// - Returns: the member that has yet to be told of the last grant in its stead.
  func release(_ member: PatternMember) -> PatternMember? {
    turns.leaves(member)
    member.subscription.release()
    dropDeparted()
    defer { turns.dropDeparted() }
    return paced.remove(member)
  }

  /// All that are there, in the order in which they have joined.
  func takeAll() -> [PatternMember] {
    dropDeparted(all: true)
    return joined
  }

  /// Drops members that have left from `joined`, when they are most of it.
  private func dropDeparted(all: Bool = false) {
    guard all || joined.count > 2 * count + 64 else { return }
    joined.removeAll { if case .ended = $0.subscription.place { true } else { false } }
  }
}
