import SluiceTopics
import SluiceWire

/// What a pattern's subscription knows of the topics that it has joined.
protocol JoinedTopic: AnyObject {
  var name: String { get }
  /// The topic's number on the stream.
  var number: UInt32 { get }
  var place: SubscriberPlace { get }
  /// Whether there are records that its subscriber hasn't been sent.
  var isBehind: Bool { get }
  /// Its turns begin when so many frames of other nodes are written.
  var begins: UInt64 { get }
  /// Its index in ``PacedMembers``.
  var pacedIndex: Int? { get set }

  /// Gives up its place in its topic: its place is ``SubscriberPlace/ended`` then.
  func leave()
}

extension JoinedTopic {
  /// Whether it has given up its place.
  var hasLeft: Bool { if case .ended = place { true } else { false } }
}

/// The topics that a subscription to a pattern has joined, and which of them have something to do. An object that is made with the first one: of many
/// subscriptions no topic is there yet.
final class PatternMembers<Member: JoinedTopic> {
  /// By name. A member is for one epoch of its topic.
  private var byName = ShortTable<String, Member>()
  /// All of them in the order in which they have joined, and some that have left.
  private var joined: [Member] = []
  var paced = PacedMembers<Member>()
  @safe @exclusivity(unchecked) var turns = PatternTurns<Member>()

  var count: Int { byName.count }

  subscript(name: String) -> Member? { byName[name] }

  /// In the order of their numbers.
  var sorted: [Member] { byName.values.sorted { $0.number < $1.number } }

  var isBehind: Bool { byName.values.contains { $0.isBehind } }

  /// Adds a member, in the place of another one of its topic's name.
  func add(_ member: Member) {
    byName[member.name] = member
    joined.append(member)
  }

  /// Takes out a member, unless another one has its name. Returns whether it was there.
  func remove(_ member: Member) -> Bool {
    guard byName[member.name] === member else { return false }
    byName[member.name] = nil
    return true
  }

  /// Gives up a member's place in its topic.
  ///
  /// - Returns: the member that has yet to be told of the last grant in its stead.
  func release(_ member: Member) -> Member? {
    turns.leaves(member)
    member.leave()
    dropDeparted()
    defer { turns.dropDeparted() }
    return paced.remove(member)
  }

  /// All that are there, in the order in which they have joined.
  func takeAll() -> [Member] {
    dropDeparted(all: true)
    return joined
  }

  /// Drops members that have left from `joined`, when they are most of it.
  private func dropDeparted(all: Bool = false) {
    guard all || joined.count > 2 * count + 64 else { return }
    joined.removeAll(where: \.hasLeft)
  }
}
