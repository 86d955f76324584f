import SluiceTopics
import SluiceWire

/// The frames of a pattern's stream that say which topic is meant, and what its receiver knows by them.
struct PatternFrames {
  private let stream: UInt32
  /// The number that the stream's frames are about, as the receiver knows it.
  private var subject: UInt32 = 0
  /// Numbers that mean nothing any more, of which the receiver wasn't told.
  private var departed: [UInt32] = []
  /// Members from the beginning that were not announced yet, or aren't live.
  private var unannounced = Countdown()
  private var awaited = Countdown()

  /// Counts members down to none; over once the receiver was told that.
  private struct Countdown {
    private var left: Int32 = 0
    private static let over = Int32.min

    var isZero: Bool { left == 0 }
    var isOver: Bool { left == Self.over }

    mutating func add(_ change: Int32) {
      if !isOver { left += change }
    }

    mutating func end() { left = Self.over }
  }

  init(stream: UInt32) {
    self.stream = stream
  }

  /// Whether the receiver has to be told of members that have left.
  var hasDeparted: Bool { !departed.isEmpty }

  /// A member has joined that was there at first: the receiver is told when all of them are announced, and when all are live.
  mutating func await(_ member: PatternMember) {
    unannounced.add(1)
    awaited.add(1)
  }

  /// Tells which topic a member reads.
  mutating func announce(_ member: PatternMember, _ writes: WriteBatch) {
    writes.append(
      Matched(number: member.number, topic: member.topic.name, place: member.beginning), stream: stream)
    noteAnnounced(member)
    member.isAnnounced = true
    guard member.missedAtStart > 0 else { return }
    member.loopState.traffic.missed(member.missedAtStart)
    select(member.number, writes)
    subject = member.number
    writes.append(
      Lag(missed: member.missedAtStart, nextOffset: member.beginning.nextOffset), stream: stream)
  }

  private mutating func noteAnnounced(_ member: PatternMember) {
    if member.isAwaited, !member.isAnnounced { unannounced.add(-1) }
  }

  /// A member is live, or never will be.
  mutating func settled(_ member: PatternMember) {
    guard member.isAwaited else { return }
    member.isAwaited = false
    awaited.add(-1)
  }

  /// A member has left.
  ///
  /// - Parameter isDeleted: the receiver is told that its number means nothing any more; otherwise the next number for the topic says so.
  mutating func departed(_ member: PatternMember, isDeleted: Bool) {
    noteAnnounced(member)
    if member.isAnnounced, isDeleted { departed.append(member.number) }
    settled(member)
  }

  /// Where the frames of a member begin in what is written, behind the frame that selects its topic.
  struct Selection {
    fileprivate let number: UInt32
    fileprivate let length: Int
    fileprivate let start: Int
  }

  /// Selects a member's topic for the frames that follow, until ``finish(_:_:)``.
  func select(_ member: PatternMember, _ writes: WriteBatch) -> Selection {
    let before = writes.bytes
    select(member.number, writes)
    return Selection(number: member.number, length: writes.bytes - before, start: writes.bytes)
  }

  /// The member's frames are written. If there are none, the frame that selects its topic is taken back.
  mutating func finish(_ selection: Selection, _ writes: WriteBatch) {
    if writes.bytes > selection.start {
      subject = selection.number
    } else if selection.length > 0 {
      writes.removeLast(selection.length)
    }
  }

  /// Selects what the next frames are about, unless it is selected. The caller notes it.
  private func select(_ number: UInt32, _ writes: WriteBatch) {
    if subject != number { writes.append(SelectTopic(number: number), stream: stream) }
  }

  /// Tells which members have left. Returns whether there was room.
  mutating func tellDeparted(_ writes: WriteBatch) -> Bool {
    guard !departed.isEmpty else { return true }
    var told = 0
    while writes.hasRoom, told < departed.count {
      writes.append(Unmatched(number: departed[told]), stream: stream)
      told += 1
    }
    departed = Array(departed.dropFirst(told))
    return departed.isEmpty
  }

  // MARK: Other nodes

  /// Another node's topics have to be announced, too, and to be live.
  mutating func awaitNode() {
    unannounced.add(1)
    awaited.add(1)
  }

  /// All topics of another node are announced that were there at first.
  mutating func nodeAnnounced() { unannounced.add(-1) }

  /// All topics of another node are live that were there at first.
  mutating func nodeSettled() { awaited.add(-1) }

  /// Writes frames of another node.
  ///
  /// - Parameter number: of the topic that they are about; 0 when that doesn't matter.
  mutating func pass(_ frames: HeldBytes, about number: UInt32, _ writes: WriteBatch) {
    if number != 0 {
      select(number, writes)
      subject = number
    }
    writes.append(frames)
  }

  /// Tells once that all topics were announced that were there at first, and once that all of them are live.
  mutating func tellProgress(_ writes: WriteBatch) {
    if unannounced.isZero {
      unannounced.end()
      writes.append(SelectTopic(number: 0), stream: stream)
      subject = 0
    }
    if awaited.isZero, unannounced.isOver {
      awaited.end()
      select(0, writes)
      subject = 0
      writes.append(Live(nextOffset: 0), stream: stream)
    }
  }
}
