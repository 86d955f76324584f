import SluiceTopics
import SluiceWire

/// A topic that a pattern's subscription has joined.
protocol JoinedTopic: AnyObject {
  var name: String { get }
  /// The topic's number on the stream.
  var number: UInt32 { get }
  var place: SubscriberPlace { get }
  /// Whether there are records that weren't sent to its subscriber.
  var isBehind: Bool { get }
  /// Its turns begin when that many frames of other nodes are written.
  var begins: UInt64 { get }
  /// Its index in ``PacedMembers``.
  var pacedIndex: Int? { get set }

  /// Detaches it from its topic; its place becomes ``SubscriberPlace/ended``.
  func leave()
}

extension JoinedTopic {
  /// Whether it was detached from its topic.
  var hasLeft: Bool { if case .ended = place { true } else { false } }
}

/// The topics that a subscription to a pattern has joined, and those of them that wait for turns. Created with the first member, since many subscriptions
/// match no topic yet.
final class PatternMembers<Member: JoinedTopic> {
  /// By name. Each member reads one epoch of its topic.
  private var byName = ShortTable<String, Member>()
  /// All members in the order in which they have joined, including some that have left.
  private var joined: [Member] = []
  var paced = PacedMembers<Member>()
  @safe @exclusivity(unchecked) var turns = PatternTurns<Member>()

  var count: Int { byName.count }

  subscript(name: String) -> Member? { byName[name] }

  /// In the order of their numbers.
  var sorted: [Member] { byName.values.sorted { $0.number < $1.number } }

  var isBehind: Bool { byName.values.contains { $0.isBehind } }

  /// Adds a member. It replaces another one with the same name.
  func add(_ member: Member) {
    byName[member.name] = member
    joined.append(member)
  }

  /// Removes a member, unless another one has its name. Returns whether it was removed.
  func remove(_ member: Member) -> Bool {
    guard byName[member.name] === member else { return false }
    byName[member.name] = nil
    return true
  }

  /// Detaches a member from its topic.
  ///
  /// - Returns: the member that would otherwise miss the last grant; see ``PacedMembers/remove(_:)``.
  func release(_ member: Member) -> Member? {
    turns.leaves(member)
    member.leave()
    dropDeparted()
    defer { turns.dropDeparted() }
    return paced.remove(member)
  }

  /// Returns all present members, in the order in which they have joined.
  func takeAll() -> [Member] {
    dropDeparted(all: true)
    return joined
  }

  /// Drops members that have left from `joined`, when they are more than half of it.
  private func dropDeparted(all: Bool = false) {
    guard all || joined.count > 2 * count + 64 else { return }
    joined.removeAll(where: \.hasLeft)
  }
}
