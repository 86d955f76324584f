/// The members of a group by number: how many records each may be assigned, and in which order.
///
/// Members that may be assigned records are ready; the first is the member that has waited longest.
struct GroupMembers: Sendable {
  private struct Member {
    /// How many more records the member may be assigned now.
    var room: UInt64 = 0
    /// Records assigned and not known to be sent; used with automatic acknowledgement.
    var unsent: UInt64 = 0
    /// The lowest offset of those, or a lower one.
    var firstUnsent = UInt64.max
  }

  private var members: [Member?] = []
  private var ready = ReadyMembers()
  /// Records assigned and not known to be sent, of all members.
  package private(set) var unsent: UInt64 = 0

  /// The member that has been ready longest.
  package var first: Int? { ready.first }

  /// The lowest offset that isn't known to be sent; all ones if there is none.
  var firstUnsent: UInt64 {
    unsent == 0 ? .max : members.reduce(.max) { min($0, $1?.firstUnsent ?? .max) }
  }

  package func contains(_ member: Int) -> Bool { members.indices.contains(member) && members[member] != nil }

  /// Adds a member without demand. Returns its number, which is reused after it has left.
  package mutating func join() -> Int {
    if let free = members.firstIndex(where: { $0 == nil }) {
      members[free] = Member()
      return free
    }
    members.append(Member())
    return members.count - 1
  }

  package mutating func leave(_ member: Int) {
    ready.remove(member)
    if let left = members[member] { unsent -= left.unsent }
    members[member] = nil
  }

  /// Sets how many more records a member may be assigned.
  mutating func setRoom(_ room: UInt64, of member: Int) {
    members[member]?.room = room
    if room > 0 { ready.append(member) } else { ready.remove(member) }
  }

  /// How many records the first member may be assigned in a run: one at a time while others are ready.
  package var share: UInt64 {
    guard let first = ready.first else { return 0 }
    return ready.count > 1 ? 1 : min(members[first]?.room ?? 0, UInt64(UInt32.max))
  }

  /// Assigns records to a member, which then follows the others that are ready.
  ///
  /// - Parameter isTracked: whether the records count as unsent until ``sent(_:by:next:)``.
  mutating func give(_ first: UInt64, _ count: UInt32, to member: Int, isTracked: Bool) {
    members[member]!.room -= UInt64(count)
    if isTracked {
      members[member]!.unsent += UInt64(count)
      members[member]!.firstUnsent = min(members[member]!.firstUnsent, first)
      unsent += UInt64(count)
    }
    if members[member]!.room == 0 { ready.remove(member) } else { ready.moveToEnd(member) }
  }

  /// Handles records that were sent to a member.
  ///
  /// - Parameter next: the first assigned offset that it hasn't been sent; nil if it has been sent all.
  package mutating func sent(_ count: UInt64, by member: Int, next: UInt64?) {
    members[member]!.unsent -= count
    unsent -= count
    members[member]!.firstUnsent = next ?? .max
  }

  func checkInvariants() {
    var unsent: UInt64 = 0
    for (number, member) in members.enumerated() {
      precondition(ready.contains(number) == ((member?.room ?? 0) > 0), "members with room are ready")
      unsent += member?.unsent ?? 0
    }
    precondition(unsent == self.unsent)
  }
}

/// Members that are ready, in the order in which they became so, each at most once. Every step takes constant time.
private struct ReadyMembers: Sendable {
  private struct Link {
    var before = -1
    var after = -1
    var isIn = false
  }

  private var links: [Link] = []
  private var head = -1
  private var tail = -1
  private(set) var count = 0

  var first: Int? { head < 0 ? nil : head }

  func contains(_ member: Int) -> Bool {
    links.indices.contains(member) && links[member].isIn
  }

  mutating func append(_ member: Int) {
    while links.count <= member { links.append(Link()) }
    guard !links[member].isIn else { return }
    links[member] = Link(before: tail, after: -1, isIn: true)
    if tail >= 0 { links[tail].after = member } else { head = member }
    tail = member
    count += 1
  }

  mutating func remove(_ member: Int) {
    guard contains(member) else { return }
    let link = links[member]
    if link.before >= 0 { links[link.before].after = link.after } else { head = link.after }
    if link.after >= 0 { links[link.after].before = link.before } else { tail = link.before }
    links[member].isIn = false
    count -= 1
  }

  mutating func moveToEnd(_ member: Int) {
    guard count > 1 else { return }
    remove(member)
    append(member)
  }
}
