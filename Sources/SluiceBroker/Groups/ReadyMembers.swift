/// Who waits, in the order of waiting: members by their numbers, each at most once. Every step takes constant time.
struct ReadyMembers {
  private struct Link {
    var before = -1
    var after = -1
    var isIn = false
  }

  private var links: [Link] = []
  private var head = -1
  private var tail = -1
  private(set) var count = 0

  /// Who has waited longest.
  var first: Int? { head < 0 ? nil : head }

  func contains(_ member: Int) -> Bool {
    links.indices.contains(member) && links[member].isIn
  }

  /// `member` begins to wait.
  mutating func append(_ member: Int) {
    while links.count <= member { links.append(Link()) }
    guard !links[member].isIn else { return }
    links[member] = Link(before: tail, after: -1, isIn: true)
    if tail >= 0 { links[tail].after = member } else { head = member }
    tail = member
    count += 1
  }

  /// `member` doesn't wait any more.
  mutating func remove(_ member: Int) {
    guard contains(member) else { return }
    let link = links[member]
    if link.before >= 0 { links[link.before].after = link.after } else { head = link.after }
    if link.after >= 0 { links[link.after].before = link.before } else { tail = link.before }
    links[member].isIn = false
    count -= 1
  }

  /// `member` begins to wait anew.
  mutating func moveToEnd(_ member: Int) {
    guard count > 1 else { return }
    remove(member)
    append(member)
  }
}
