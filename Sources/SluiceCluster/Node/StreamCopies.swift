import SluiceNATS

/// The copies of one stream, as its leader calls them. A value.
struct StreamCopies: Hashable, Sendable {
  enum State: Hashable, Sendable {
    case current
    /// It has yet to get what the others have, by two answers in succession: by one, it may just be about to.
    case lagging
    case offline
  }

  struct Copy: Hashable, Sendable {
    var server: String
    var state: State
  }

  /// A copy that is behind by so many messages is called so while others come, too: with fewer it follows closely.
  private static let farBehind: UInt64 = 256

  /// Sorted by the servers' names; empty while no leader has said.
  private(set) var copies: [Copy] = []
  /// How many there should be.
  private(set) var wanted = 0
  /// The servers whose copies the last answer didn't call current.
  private var behind: Set<String> = []
  private var lastSequence: UInt64 = 0
  /// The answers in succession in which the stream had no leader.
  private var leaderless = 0

  /// Two answers in succession have named no leader.
  var hasNoLeader: Bool { leaderless > 1 }

  /// Whether the next answer decides what the last one has left open.
  var isInDoubt: Bool {
    leaderless == 1 || copies.contains { $0.state == .current && behind.contains($0.server) }
  }

  /// - Parameter isQuiet: whether it gets so few messages that a copy which isn't current is behind.
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

  /// The stream's leader didn't answer, or there is none.
  mutating func tookNoLeader() {
    (copies, behind) = ([], [])
    leaderless += 1
  }

  /// How many copies have everything.
  ///
  /// - Parameter lost: servers that don't count, whatever the leader says.
  func current(without lost: some Collection<String>) -> Int {
    copies.count { $0.state == .current && !lost.contains($0.server) }
  }
}
