/// Which member of a subscription to a pattern is next. Members that have left stay in the queues until their turn comes, or there are too many of them.
struct PatternTurns<Member: JoinedTopic> {
  private var turns = FairTurns<Member>()
  /// Members that have left and are still in `turns`.
  private var gone = 0
  /// Members that wait for frames of the node that served their topics before.
  private var held: [Member] = []

  /// How many want turns.
  var count: Int { turns.count }

  mutating func append(_ member: Member) { turns.append(member) }

  /// A member has records, and there was no demand for them.
  mutating func demandExhausted(_ member: Member) { turns.demandExhausted(member) }

  func isTurn(available: UInt64) -> Bool { turns.isTurn(available: available) }

  enum Next {
    /// A member has a turn, with a share of the demand.
    case member(Member, share: UInt64)
    /// The next one has left, or waits for a frame: it was passed over.
    case passedOver
    /// None can have a turn.
    case none
  }

  /// Takes out the next member.
  ///
  /// - Parameter written: how many frames of other nodes are written; a member that waits for later ones is passed over until ``goOn(_:)``. Nil where none
  ///   waits.
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

  /// Members that waited for frames of other nodes that are written by now want turns.
  mutating func goOn(_ written: UInt64) {
    guard !held.isEmpty else { return }
    let (free, waiting) = (held.filter { $0.begins <= written }, held.filter { $0.begins > written })
    held = waiting
    for member in free { turns.append(member) }
  }

  /// A member is about to leave.
  mutating func leaves(_ member: Member) {
    if let index = held.firstIndex(where: { $0 === member }) {
      held.remove(at: index)
    } else if case .ready = member.place {
      gone += 1
    }
  }

  /// Drops members that have left, when they are most of what waits: those that wait for demand would stay for as long as there is none.
  mutating func dropDeparted() {
    guard gone > 64, gone > turns.count / 2 else { return }
    turns.removeAll(where: \.hasLeft)
    gone = 0
  }
}
