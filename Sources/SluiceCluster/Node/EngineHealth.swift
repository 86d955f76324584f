import SluiceNATS

/// What a node knows of the engine's servers and of the stream with leases, as a value: answers come in, sentences come out.
///
/// ```
///   STREAM.INFO of SLUICE_CTL ──┐
///   JSZ of each server ─────────┼──► EngineHealth ──► which servers lack, and why nothing is stored
///   outcomes of renewals ───────┘
/// ```
struct EngineHealth: Hashable, Sendable {
  /// A server that has a copy of the stream with leases.
  struct Copy: Hashable, Sendable {
    enum State: Hashable, Sendable {
      case current
      /// It has yet to get what the others have, by two answers in succession: by one, it may just be about to.
      case lagging
      case offline
    }

    var server: String
    var state: State
  }

  /// Sorted by the servers' names; empty while no leader has said.
  private(set) var copies: [Copy] = []
  /// The servers that have disabled JetStream, sorted.
  private(set) var disabled: [String] = []
  /// The servers whose room is nearly used up, and the share that is used, in percent; sorted by name.
  private(set) var nearlyFull: [String: Int] = [:]
  /// Why the stream's leader hasn't said which copies there are; nil when it has.
  private var infoProblem: NATSError?
  /// Why the last renewal of the lease wasn't stored; nil when it was.
  private var renewalProblem: NATSError?
  /// The copies that the leader named last, also while there is none now.
  private var known: [String] = []
  /// The servers whose copies the last answer didn't call current.
  private var behind: Set<String> = []

  /// From which share of its room on a server counts as nearly full, in percent.
  static let fullness = 90

  /// The stream's leader has said which copies there are, or it couldn't be asked.
  mutating func take(_ result: Result<StreamInfo, NATSError>) {
    switch result {
    case .failure(let error):
      infoProblem = error
      copies = []
    case .success(let info):
      infoProblem = nil
      guard let cluster = info.cluster, let leader = cluster.leader else {
        copies = []
        return
      }
      let replicas = cluster.replicas ?? []
      let others = replicas.map { replica in
        let isCurrent = replica.current == true || !behind.contains(replica.name)
        return Copy(
          server: replica.name, state: replica.offline == true ? .offline : isCurrent ? .current : .lagging)
      }
      behind = Set(replicas.lazy.filter { $0.current != true }.map(\.name))
      copies = (others + [Copy(server: leader, state: .current)]).sorted { $0.server < $1.server }
      known = copies.map(\.server)
    }
  }

  /// The servers that have answered.
  mutating func take(_ servers: [EngineServer]) {
    disabled = servers.filter { !$0.hasJetStream }.map(\.name).sorted()
    nearlyFull = [:]
    for server in servers {
      if let share = server.storageShare, share >= Self.fullness { nearlyFull[server.name] = share }
    }
  }

  /// A renewal of the lease was stored, or wasn't.
  mutating func renewed(_ result: Result<PublishAcknowledgement, NATSError>) {
    switch result {
    case .success: renewalProblem = nil
    // Another writer was there: the engine stores.
    case .failure(let error): renewalProblem = error.code == .wrongLastSequence ? nil : error
    }
  }

  /// The connection is lost: nothing is known any more.
  mutating func forget() {
    (copies, behind, disabled, nearlyFull, infoProblem, renewalProblem) = ([], [], [], [:], nil, nil)
  }

  // MARK: What it means

  /// How many copies there should be, and how many are current; nil while that isn't known.
  var redundancy: (copies: Int, current: Int)? {
    copies.isEmpty
      ? nil : (copies.count, copies.count { $0.state == .current && !disabled.contains($0.server) })
  }

  /// What an operator should mend although the engine still stores, in sentences without a full stop.
  var warnings: [String] {
    var warnings: [String] = []
    let lost = copies.filter { $0.state != .current && !disabled.contains($0.server) }
    for copy in lost {
      warnings.append(
        copy.state == .offline
          ? "server \(copy.server) of the engine is offline; start it, or replace it"
          : "server \(copy.server) of the engine has yet to get what the others have")
    }
    for server in disabled {
      warnings.append(
        "server \(server) of the engine has disabled JetStream, as after its disk was full or has failed; make room on its disk, and start it again"
      )
    }
    for (server, share) in nearlyFull.sorted(by: { $0.key < $1.key }) {
      warnings.append(
        "server \(server) of the engine has used \(share) % of its max_file_store; delete topics or records, or give it more"
      )
    }
    if let redundancy, redundancy.current < redundancy.copies, !warnings.isEmpty {
      let spare = redundancy.current - (redundancy.copies / 2 + 1)
      let what = "\(redundancy.current) of \(redundancy.copies) copies of what is stored are current"
      warnings.append(
        spare > 0 ? what : "\(what): durable publishing stops when one more server is lost")
    }
    return warnings
  }

  /// Why renewals of the lease aren't stored, in a sentence without a full stop: one of three things.
  var obstacle: String {
    if !disabled.isEmpty, disabled.count * 2 >= max(known.count, 1) {
      return
        "the engine is out of resources: \(disabled.joined(separator: ", ")) of its servers have disabled JetStream, as after their disks were full; make room on the disks, and start these servers again"
    }
    let full = nearlyFull.filter { $0.value >= 100 }.map(\.key).sorted()
    if !full.isEmpty, full.count * 2 >= max(known.count, 1) {
      return
        "the engine is out of resources: \(full.joined(separator: ", ")) of its servers have used their max_file_store; raise it, start them again one after the other, and delete topics or records then"
    }
    let problem = renewalProblem ?? infoProblem
    switch problem?.code {
    case .resourcesExhausted?:
      return "the engine is out of resources: \(problem?.message ?? "")"
    case .noResponders?, .unavailable?:
      return
        "the engine has no majority of its servers: the stream with the leases has no leader; start the servers that don't run, and look whether they have disabled JetStream after their disks were full"
    default: return "the engine answers too late"
    }
  }
}
