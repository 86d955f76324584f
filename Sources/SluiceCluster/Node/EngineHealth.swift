import SluiceNATS

/// The known state of the engine's servers and of the streams there. A value: its input is answers, its output sentences.
///
/// ```
///   STREAM.INFO of SLUICE_CTL and of shards ──┐
///   JSZ of each server ───────────────────────┼──► EngineHealth ──► which servers and copies lack, and why nothing is stored
///   outcomes of renewals ─────────────────────┘
/// ```
///
/// It describes the engine, not the connection. An answer of one server is valid until another server answers differently, because a node whose lease isn't
/// stored tries one server after another.
struct EngineHealth: Hashable, Sendable {
  /// By stream name, for streams whose leaders were asked.
  private var streams: [String: StreamCopies] = [:]
  /// The servers that have disabled JetStream, sorted.
  private(set) var disabled: [String] = []
  /// The servers whose space is nearly used up, and the used share in percent; sorted by name.
  private(set) var nearlyFull: [String: Int] = [:]
  /// Why the leader of the stream with leases hasn't reported its copies; nil if it has.
  private var infoProblem: NATSError?
  /// Why the last renewal of the lease wasn't stored; nil when it was.
  private var renewalProblem: NATSError?
  /// The servers of the stream with leases that its leader last reported, also while it has no leader.
  private var known: [String] = []

  /// The used share of its space, in percent, from which a server counts as nearly full.
  static let fullness = 90

  /// Handles the copies that a stream's leader has reported, or the failure to query it.
  mutating func take(_ result: Result<StreamInfo, NATSError>, of stream: String = ControlRecord.stream) {
    let isControl = stream == ControlRecord.stream
    var copies = streams[stream] ?? StreamCopies()
    switch result {
    case .failure(let error) where error.code == .streamNotFound && !isControl:
      // No node has opened the shard yet.
      streams[stream] = nil
      return
    case .failure(let error):
      if isControl { infoProblem = error }
      copies.tookNoLeader()
    case .success(let info):
      if isControl { infoProblem = nil }
      copies.take(info, isQuiet: isControl)
      if isControl, !copies.copies.isEmpty { known = copies.copies.map(\.server) }
    }
    streams[stream] = copies
  }

  /// The shards' streams whose state depends on the next answer, sorted.
  var inDoubt: [String] {
    streams.filter { $0.value.isInDoubt && $0.key != ControlRecord.stream }.keys.sorted()
  }

  /// Handles the servers' answers.
  mutating func take(_ servers: [EngineServer]) {
    disabled = servers.filter { !$0.hasJetStream }.map(\.name).sorted()
    nearlyFull = [:]
    for server in servers {
      if let share = server.storageShare, share >= Self.fullness { nearlyFull[server.name] = share }
    }
  }

  /// Handles the result of a lease renewal.
  mutating func renewed(_ result: Result<PublishAcknowledgement, NATSError>) {
    switch result {
    case .success: renewalProblem = nil
    // Another writer's message was stored, so the engine works.
    case .failure(let error): renewalProblem = error.code == .wrongLastSequence ? nil : error
    }
  }

  // MARK: Conclusions

  /// For the stream that has lost most copies: how many it should have, and how many are current; nil while unknown.
  var redundancy: (copies: Int, current: Int)? {
    streams.values.lazy.filter { !$0.copies.isEmpty }
      .map { [disabled] in (copies: $0.wanted, current: $0.current(without: disabled)) }
      .min { (Self.spare($0), $0.current) < (Self.spare($1), $1.current) }
  }

  /// How many more copies may be lost before the engine can't store.
  private static func spare(_ redundancy: (copies: Int, current: Int)) -> Int {
    redundancy.current - (redundancy.copies / 2 + 1)
  }

  /// Problems that an operator should fix although the engine still stores.
  var warnings: [EngineWarning] {
    var warnings = copyWarnings
    for server in disabled {
      warnings.append(
        EngineWarning(
          "disabled \(server)",
          "server \(server) of the engine has disabled JetStream, as after its disk was full or has failed; make room on its disk, and start it again"
        ))
    }
    for (server, share) in nearlyFull.sorted(by: { $0.key < $1.key }) {
      warnings.append(
        EngineWarning(
          "full \(server)",
          "server \(server) of the engine has used \(share) % of its max_file_store; delete topics or records, or give it more"
        ))
    }
    if !warnings.isEmpty, let lost = redundancyWarning { warnings.append(lost) }
    return warnings
  }

  private var redundancyWarning: EngineWarning? {
    guard let redundancy, redundancy.current < redundancy.copies else { return nil }
    let degraded = streams.values.count { !$0.copies.isEmpty && $0.current(without: disabled) < $0.wanted }
    let isAll = degraded == knownStreams
    var text =
      "\(redundancy.current) of \(redundancy.copies) copies of \(isAll ? "what is stored" : "\(degraded) of \(knownStreams) streams") are current"
    let spare = Self.spare(redundancy)
    if spare <= 0 {
      text +=
        ": durable publishing \(isAll ? "" : "there ")\(spare < 0 ? "waits" : "stops when one more server is lost")"
    }
    return EngineWarning("copies \(redundancy.current)", text)
  }

  /// Warnings about copies that are missing or lag, and about streams without a leader.
  private var copyWarnings: [EngineWarning] {
    var offline: [String: [String]] = [:]
    var lagging: [String: [String]] = [:]
    var short: [String] = []
    var headless: [String] = []
    for (name, stream) in streams.sorted(by: { ($0.key.utf8.count, $0.key) < ($1.key.utf8.count, $1.key) }) {
      for copy in stream.copies where !disabled.contains(copy.server) {
        if copy.state == .offline { offline[copy.server, default: []].append(name) }
        if copy.state == .lagging { lagging[copy.server, default: []].append(name) }
      }
      if !stream.copies.isEmpty, stream.copies.count < stream.wanted { short.append(name) }
      // A missing leader of the stream with leases is the reason why the node isn't ready.
      if stream.hasNoLeader, name != ControlRecord.stream { headless.append(name) }
    }
    var warnings: [EngineWarning] = []
    for (server, names) in offline.sorted(by: { $0.key < $1.key }) {
      let what = "server \(server) of the engine is offline\(part(names, ", with copies of "))"
      warnings.append(EngineWarning("offline \(server)", "\(what); start it, or replace it"))
    }
    for (server, names) in lagging.sorted(by: { $0.key < $1.key }) {
      let what = "server \(server) of the engine has yet to get what the others have\(part(names, " of "))"
      warnings.append(EngineWarning("lagging \(server)", what))
    }
    if !short.isEmpty {
      let what = "the engine has fewer copies than it should of \(Self.list(short)); add a server"
      warnings.append(EngineWarning("short", what))
    }
    if !headless.isEmpty {
      let what =
        "no server of the engine leads \(Self.list(headless)); start the servers that have copies of them"
      warnings.append(EngineWarning("headless", what))
    }
    return warnings
  }

  /// The number of streams whose leaders have reported where their copies are.
  private var knownStreams: Int { streams.values.count { !$0.copies.isEmpty } }

  /// Which streams, if not all of them.
  private func part(_ names: [String], _ word: String) -> String {
    names.count == knownStreams ? "" : word + Self.list(names)
  }

  private static func list(_ names: [String]) -> String {
    let few = names.prefix(3).joined(separator: ", ")
    return names.count > 3 ? "\(few) and \(names.count - 3) more" : few
  }

  /// Why renewals of the lease aren't stored, in a sentence without a full stop: one of three reasons.
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
