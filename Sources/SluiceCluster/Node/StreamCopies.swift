import SluiceNATS

/// The copies of one stream, as reported by its leader. A value.
struct StreamCopies: Hashable, Sendable {
  enum State: Hashable, Sendable {
    case current
    /// It lags by two successive answers: after one, it may just be about to catch up.
    case lagging
    case offline
  }

  struct Copy: Hashable, Sendable {
    var server: String
    var state: State
  }

  /// A copy that lags by this many messages is reported even while new ones arrive; with fewer, it follows closely.
  private static let farBehind: UInt64 = 256

  /// Sorted by the servers' names; empty until a leader has answered.
  private(set) var copies: [Copy] = []
  /// The number of copies that there should be.
  private(set) var wanted = 0
  /// The servers whose copies weren't current in the last answer.
  private var behind: Set<String> = []
  private var lastSequence: UInt64 = 0
  /// The number of successive answers without a leader.
  private var leaderless = 0

  /// Whether two successive answers have named no leader.
  var hasNoLeader: Bool { leaderless > 1 }

  /// Whether the next answer decides a question that the last one has left open.
  var isInDoubt: Bool {
    leaderless == 1 || copies.contains { $0.state == .current && behind.contains($0.server) }
  }

  /// - Parameter isQuiet: whether the stream gets so few messages that a copy that isn't current lags.
  mutating func take(_ info: StreamInfo, isQuiet: Bool) {
    guard let cluster = info.cluster, let leader = cluster.leader else { return tookNoLeader() }
    leaderless = 0
    let replicas = cluster.replicas ?? []
    let standsStill = isQuiet || info.state.lastSequence == lastSequence
    lastSequence = info.state.lastSequence
    let others = replicas.map { replica in
      let isBehind = behind.contains(replica.name) && (standsStill || replica.lag ?? .max >= Self.farBehind)
      let isCurrent = replica.current == true || !isBehind
      return Copy(
        server: replica.name, state: replica.offline == true ? .offline : isCurrent ? .current : .lagging)
    }
    behind = Set(replicas.lazy.filter { $0.current != true }.map(\.name))
    copies = (others + [Copy(server: leader, state: .current)]).sorted { $0.server < $1.server }
    wanted = max(info.configuration.replicas, copies.count)
  }

  /// Handles that the stream's leader didn't answer, or that there is none.
  mutating func tookNoLeader() {
    (copies, behind) = ([], [])
    leaderless += 1
  }

  /// The number of copies that are complete.
  ///
  /// - Parameter lost: servers that don't count, whatever the leader reports.
  func current(without lost: some Collection<String>) -> Int {
    copies.count { $0.state == .current && !lost.contains($0.server) }
  }
}
