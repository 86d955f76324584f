/// The order of turns of a pattern's members. Members that have left stay in the queues until their turn comes, or until there are too many of them.
struct PatternTurns<Member: JoinedTopic> {
  private var turns = FairTurns<Member>()
  /// Members that have left and are still in `turns`.
  private var gone = 0
  /// Members that wait for frames of the nodes that served their topics before.
  private var held: [Member] = []

  /// The number of members that wait for turns.
  var count: Int { turns.count }

  mutating func append(_ member: Member) { turns.append(member) }

  /// Queues a member that has records, until there is demand.
  mutating func demandExhausted(_ member: Member) { turns.demandExhausted(member) }

  func isTurn(available: UInt64) -> Bool { turns.isTurn(available: available) }

  enum Next {
    /// A member has a turn, with a share of the demand.
    case member(Member, share: UInt64)
    /// The next member has left, or waits for a frame, and was skipped.
    case passedOver
    /// No member can have a turn.
    case none
  }

  /// Removes and returns the next member.
  ///
  /// - Parameter written: the number of written frames of other nodes; a member that waits for later ones is skipped until ``goOn(_:)``. Nil if no member
  ///   waits for frames.
  mutating func next(available: UInt64, written: UInt64?) -> Next {
    guard let (member, share) = turns.next(available: available) else { return .none }
    guard case .ready = member.place else {
      gone -= 1
      return .passedOver
    }
    guard let written, member.begins > written else { return .member(member, share: share) }
    held.append(member)
    return .passedOver
  }

  /// Queues the members that have waited for frames of other nodes that are written now.
  mutating func goOn(_ written: UInt64) {
    guard !held.isEmpty else { return }
    let (free, waiting) = (held.filter { $0.begins <= written }, held.filter { $0.begins > written })
    held = waiting
    for member in free { turns.append(member) }
  }

  /// Called before a member leaves.
  mutating func leaves(_ member: Member) {
    if let index = held.firstIndex(where: { $0 === member }) {
      held.remove(at: index)
    } else if case .ready = member.place {
      gone += 1
    }
  }

  /// Removes members that have left if they are more than half of the queue. Otherwise those that wait for demand would stay as long as there is none.
  mutating func dropDeparted() {
    guard gone > 64, gone > turns.count / 2 else { return }
    turns.removeAll(where: \.hasLeft)
    gone = 0
  }
}
