/// Members of a subscription to a pattern whose topics have paced producers. Notifying all of them of a grant may take several turns; this tracks the
/// progress.
struct PacedMembers<Member: JoinedTopic> {
  private var members: [Member] = []
  /// How many members were notified of the last grant, while that is in progress.
  private var told = 0
  private var isTelling = false

  var isEmpty: Bool { members.isEmpty }

  /// Adds a member. Returns false if it was added before.
  mutating func add(_ member: Member) -> Bool {
    guard member.pacedIndex == nil else { return false }
    member.pacedIndex = members.count
    members.append(member)
    return true
  }

  /// Removes a member, if it was added.
  ///
  /// - Returns: the member that has moved to the free index, if the last grant would otherwise miss it, since that index was notified before.
  mutating func remove(_ member: Member) -> Member? {
    guard let index = member.pacedIndex else { return nil }
    member.pacedIndex = nil
    let last = members.removeLast()
    guard last !== member else { return nil }
    members[index] = last
    last.pacedIndex = index
    return isTelling && index < told ? last : nil
  }

  /// Starts to notify all members of a new grant. Returns whether no earlier grant was in progress.
  mutating func beginTelling() -> Bool {
    told = 0
    defer { isTelling = true }
    return !isTelling
  }

  /// Whether some members haven't been notified yet.
  var hasMoreToTell: Bool { told < members.count }

  /// Returns the next member to notify. There must be one.
  mutating func nextToTell() -> Member {
    told += 1
    return members[told - 1]
  }

  /// Ends a turn. Returns whether another one is needed.
  mutating func goesOnTelling() -> Bool {
    isTelling = hasMoreToTell
    return isTelling
  }
}
