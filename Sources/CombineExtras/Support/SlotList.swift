/// Objects in the order in which they came. Adding and removing are O(1).
@usableFromInline
struct SlotList<Member: SlotMember> {
  /// The members, with gaps where some have left.
  @usableFromInline var slots: [Member?] = []
  @usableFromInline var gaps = 0

  @inlinable init() {}

  @inlinable
  mutating func add(_ member: Member) {
    member.slot = slots.count
    slots.append(member)
  }

  @inlinable
  mutating func remove(_ member: Member) {
    guard member.slot >= 0 else { return }
    slots[member.slot] = nil
    member.slot = -1
    gaps += 1
    if gaps > 16, gaps > slots.count / 2 || gaps == slots.count { closeGaps() }
  }

  @inlinable
  mutating func closeGaps() {
    slots = slots.filter { $0 != nil }
    gaps = 0
    for (index, member) in slots.enumerated() {
      member?.slot = index
    }
  }
}

@usableFromInline
protocol SlotMember: AnyObject {
  /// Where the list keeps the member; -1 if nowhere. Belongs to the list.
  var slot: Int { get set }
}
