import SluiceIO

/// The members of a pattern's subscription that is over. They leave their topics a share at a time.
///
/// Until a member has left, its topic counts it as a subscriber; it is sent nothing more.
// @unchecked: belongs to the loop of its connection, which runs its jobs.
final class PatternDeparture: @unchecked Sendable {
  /// Leaving a topic takes about a microsecond.
  private static let together = 256

  /// Members refer to their pattern's subscription, and to their connection, as long as they are in their topics' lists.
  private let pattern: PatternSubscription
  private let connection: Connection
  private var members: ArraySlice<PatternMember>

  init(_ members: [PatternMember], of pattern: PatternSubscription) {
    self.pattern = pattern
    connection = pattern.connection
    self.members = members[...]
  }

  /// Has the next of them leave, and goes on in a later turn. On the connection's loop.
  func goOn() {
    for member in members.prefix(Self.together) {
      member.leave()
      member.place = .ended
    }
    members = members.dropFirst(Self.together)
    guard !members.isEmpty else { return }
    connection.context.loop.execute { [self] in goOn() }
  }
}
