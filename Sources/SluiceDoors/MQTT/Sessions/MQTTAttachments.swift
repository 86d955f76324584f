import SluiceIO

/// The connections of a process that have sessions, or wait for them, by the numbers of their claims.
struct MQTTAttachments {
  /// The session is the connection's now, with what an earlier one has left. No claim: the connection needs none.
  typealias Grant = @Sendable (MQTTClaim?, MQTTKeptSession?) -> Void

  struct Attachment {
    var key: MQTTHub.Key
    var handle: MQTTHandle
    /// When it has begun to wait, or has seized the session last.
    var since: MonotonicTime
    /// Called when it has the session; nil once it has.
    var completion: Grant?
    /// What there was before it had the session, and when that was left.
    var former: (state: MQTTRosterState, leftAt: Int64?)?
    /// It is gone, and leaves the session as it was once it has it.
    var isGivenUp = false
  }

  /// How long a connection waits for the one that has its session.
  private static let patience = Duration.seconds(5)

  private var attachments: [UInt64: Attachment] = [:]

  subscript(number: UInt64) -> Attachment? { attachments[number] }

  mutating func add(_ number: UInt64, _ attachment: Attachment) { attachments[number] = attachment }

  mutating func remove(_ number: UInt64) -> Attachment? { attachments.removeValue(forKey: number) }

  /// Takes all of them.
  mutating func removeAll() -> [Attachment] {
    defer { attachments = [:] }
    return Array(attachments.values)
  }

  /// The connection leaves the session as it was. The claim is in the log, or on its way there: what it leaves is known when it counts.
  ///
  /// - Returns: whether it has the session.
  mutating func giveUp(_ number: UInt64) -> Bool {
    attachments[number]?.isGivenUp = true
    return attachments[number].map { $0.completion == nil } ?? false
  }

  /// The connection has the session.
  ///
  /// - Returns: what is called then; nil for a connection that has it already, or is none of these.
  mutating func grant(_ number: UInt64, _ former: MQTTRosterState, leftAt: Int64?) -> Grant? {
    guard let completion = attachments[number]?.completion.take() else { return nil }
    attachments[number]?.former = (former, leftAt)
    return completion
  }

  /// The connections that have waited for so long that they take their sessions from others. Each is returned again after as long.
  ///
  /// - Parameter waits: whether the roster has a connection wait.
  mutating func takeImpatient(
    now: MonotonicTime, _ waits: (_ number: UInt64, _ key: MQTTHub.Key) -> Bool
  ) -> [(number: UInt64, key: MQTTHub.Key)] {
    var found: [(number: UInt64, key: MQTTHub.Key)] = []
    for (number, attachment) in attachments
    where attachment.completion != nil && !attachment.isGivenUp && now >= attachment.since + Self.patience
      && waits(number, attachment.key)
    {
      attachments[number]?.since = now
      found.append((number, attachment.key))
    }
    return found
  }
}
