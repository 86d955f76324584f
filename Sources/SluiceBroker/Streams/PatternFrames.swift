import SluiceTopics
import SluiceWire

/// Writes the frames that announce and select topics on a pattern's stream, and tracks which of them the receiver was sent.
struct PatternFrames {
  private let stream: UInt32
  /// The number that the next frames are about, as the receiver knows it.
  private var subject: UInt32 = 0
  /// Numbers that are no longer used, for which UNMATCHED wasn't sent yet.
  private var departed: [UInt32] = []
  /// Members from the beginning that weren't announced yet, and those that aren't live yet.
  private var unannounced = Countdown()
  private var awaited = Countdown()

  /// Counts members down to zero. Ended once the receiver was notified of it.
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

  /// Whether UNMATCHED has to be sent for members that have left.
  var hasDeparted: Bool { !departed.isEmpty }

  /// Counts a member that has joined at the beginning. The receiver is notified when all of these are announced, and when all are live.
  mutating func await(_ member: PatternMember) {
    unannounced.add(1)
    awaited.add(1)
  }

  /// Announces the topic of a member, with its number.
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

  /// Counts down when a member is live, or never will be.
  mutating func settled(_ member: PatternMember) {
    guard member.isAwaited else { return }
    member.isAwaited = false
    awaited.add(-1)
  }

  /// Called when a member has left.
  ///
  /// - Parameter isDeleted: true to send UNMATCHED for its number; otherwise the topic's next MATCHED replaces the number.
  mutating func departed(_ member: PatternMember, isDeleted: Bool) {
    noteAnnounced(member)
    if member.isAnnounced, isDeleted { departed.append(member.number) }
    settled(member)
  }

  /// The position at which a member's frames begin in the output, after the frame that selects its topic.
  struct Selection {
    fileprivate let number: UInt32
    fileprivate let length: Int
    fileprivate let start: Int
  }

  /// Selects a member's topic for the following frames, until ``finish(_:_:)``.
  func select(_ member: PatternMember, _ writes: WriteBatch) -> Selection {
    let before = writes.bytes
    select(member.number, writes)
    return Selection(number: member.number, length: writes.bytes - before, start: writes.bytes)
  }

  /// Ends the frames of a member. If there are none, the frame that selects its topic is removed.
  mutating func finish(_ selection: Selection, _ writes: WriteBatch) {
    if writes.bytes > selection.start {
      subject = selection.number
    } else if selection.length > 0 {
      writes.removeLast(selection.length)
    }
  }

  /// Selects the subject of the next frames, unless it is selected. The caller sets `subject`.
  private func select(_ number: UInt32, _ writes: WriteBatch) {
    if subject != number { writes.append(SelectTopic(number: number), stream: stream) }
  }

  /// Writes UNMATCHED for members that have left. Returns whether all of them fit.
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

  /// Waits until another node's topics are announced, and until they are live.
  mutating func awaitNode() {
    unannounced.add(1)
    awaited.add(1)
  }

  /// Called when another node has announced all its topics from the beginning.
  mutating func nodeAnnounced() { unannounced.add(-1) }

  /// Called when all topics of another node from the beginning are live.
  mutating func nodeSettled() { awaited.add(-1) }

  /// Writes frames of another node.
  ///
  /// - Parameter number: the number of their topic; 0 for frames that aren't about one.
  mutating func pass(_ frames: HeldBytes, about number: UInt32, _ writes: WriteBatch) {
    if number != 0 {
      select(number, writes)
      subject = number
    }
    writes.append(frames)
  }

  /// Writes a notice once all topics from the beginning are announced, and another one once all of them are live.
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
