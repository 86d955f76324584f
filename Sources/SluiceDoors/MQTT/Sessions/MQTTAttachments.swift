import SluiceIO

/// The connections of a process that have sessions or wait for them, by the numbers of their claims.
struct MQTTAttachments {
  /// Gives the session to the connection, with the state that an earlier one has left. Without a claim, the connection needs none.
  typealias Grant = @Sendable (MQTTClaim?, MQTTKeptSession?) -> Void

  struct Attachment {
    var key: MQTTHub.Key
    var handle: MQTTHandle
    /// When the connection began to wait, or last seized the session.
    var since: MonotonicTime
    /// Called when the connection gets the session; nil after that.
    var completion: Grant?
    /// The session's state before the connection got it, and when its last connection ended.
    var former: (state: MQTTRosterState, leftAt: Int64?)?
    /// Whether the connection has ended. It then leaves the session unchanged once it gets it.
    var isGivenUp = false
  }

  /// How long a connection waits for the current holder of its session.
  private static let patience = Duration.seconds(5)

  private var attachments: [UInt64: Attachment] = [:]

  subscript(number: UInt64) -> Attachment? { attachments[number] }

  mutating func add(_ number: UInt64, _ attachment: Attachment) { attachments[number] = attachment }

  mutating func remove(_ number: UInt64) -> Attachment? { attachments.removeValue(forKey: number) }

  /// Removes and returns all attachments.
  mutating func removeAll() -> [Attachment] {
    defer { attachments = [:] }
    return Array(attachments.values)
  }

  /// Marks the connection as ended, so that it leaves the session unchanged. Its claim is in the log or about to be, so the state to leave may be known only
  /// once the claim counts.
  ///
  /// - Returns: whether the connection already has the session.
  mutating func giveUp(_ number: UInt64) -> Bool {
    attachments[number]?.isGivenUp = true
    return attachments[number].map { $0.completion == nil } ?? false
  }

  /// Notes that the connection has the session.
  ///
  /// - Returns: the completion to call; nil if the connection had the session already, or isn't of this process.
  mutating func grant(_ number: UInt64, _ former: MQTTRosterState, leftAt: Int64?) -> Grant? {
    guard let completion = attachments[number]?.completion.take() else { return nil }
    attachments[number]?.former = (former, leftAt)
    return completion
  }

  /// Returns the connections that have waited for long enough to seize their sessions. Each is returned again after the same time.
  ///
  /// - Parameter waits: returns whether the connection still waits according to the roster.
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
