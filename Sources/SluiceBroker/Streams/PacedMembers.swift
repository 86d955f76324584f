/// Members of a subscription to a pattern whose topics' producers are paced, and which of them know of the last grant: telling all of them may take several
/// turns.
struct PacedMembers<Member: JoinedTopic> {
  private var members: [Member] = []
  /// How many of them know of the last grant, while it is being told.
  private var told = 0
  private var isTelling = false

  var isEmpty: Bool { members.isEmpty }

  /// Adds a member. Returns whether it is a new one.
  mutating func add(_ member: Member) -> Bool {
    guard member.pacedIndex == nil else { return false }
    member.pacedIndex = members.count
    members.append(member)
    return true
  }

  /// Removes a member, if it is one.
  ///
  /// - Returns: the member that has taken its place and has yet to be told of the last grant, which is done with that place.
  mutating func remove(_ member: Member) -> Member? {
    guard let index = member.pacedIndex else { return nil }
    member.pacedIndex = nil
    let last = members.removeLast()
    guard last !== member else { return nil }
    members[index] = last
    last.pacedIndex = index
    return isTelling && index < told ? last : nil
  }

  /// There is a new grant, of which all are to be told. Returns whether nothing was being told.
  mutating func beginTelling() -> Bool {
    told = 0
    defer { isTelling = true }
    return !isTelling
  }

  /// Whether some have yet to be told.
  var hasMoreToTell: Bool { told < members.count }

  /// The next member to be told. There is one.
  mutating func nextToTell() -> Member {
    told += 1
    return members[told - 1]
  }

  /// A turn of telling is over. Returns whether there is to be another.
  mutating func goesOnTelling() -> Bool {
    isTelling = hasMoreToTell
    return isTelling
  }
}
