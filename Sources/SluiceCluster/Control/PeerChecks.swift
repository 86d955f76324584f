import SluiceIO

/// A broker that this node tries to reach at the address that its node advertises.
struct PeerCheck: Hashable, Sendable {
  var node: String
  var address: String
  var broker: UInt64
}

/// The brokers of other nodes that this node has reached, and why it hasn't reached others. A value: a broker is checked until it is reached, and again after
/// a link to it has failed.
struct PeerChecks {
  private struct Finding {
    var peer: PeerCheck
    var isUnderWay = false
    var failures = 0
    /// Why the last check has failed; nil if none has, or it has succeeded.
    var problem: String?
    /// Since when checks have failed.
    var failingSince: MonotonicTime?
    var next: MonotonicTime
  }

  private static let firstDelay = Duration.milliseconds(500)
  private static let longestDelay = Duration.seconds(5)

  private let name: String
  private var findings: [String: Finding] = [:]
  /// Nodes that haven't been reached, or can no longer be reached.
  private var open: Set<String> = []
  /// Nodes that this node has reached, and for which no such statement may be stored.
  private(set) var unstated: Set<String> = []

  /// - Parameter name: this node's name.
  init(of name: String) {
    self.name = name
  }

  /// Handles a changed entry of a node.
  ///
  /// - Parameter entry: nil for a node that is no longer known.
  mutating func observed(_ entry: NodeEntry?, of node: String, at now: MonotonicTime) {
    guard let record = entry?.record, entry?.isLive == true, node != name, record.broker != 0 else {
      return forget(node)
    }
    let peer = PeerCheck(node: node, address: record.address, broker: record.broker)
    if findings[node]?.peer == peer { return }
    findings[node] = Finding(peer: peer, next: now)
    open.insert(node)
    unstated.remove(node)
  }

  private mutating func forget(_ node: String) {
    findings[node] = nil
    open.remove(node)
    unstated.remove(node)
  }

  private func isReached(_ node: String) -> Bool { findings[node] != nil && !open.contains(node) }

  /// Handles another node's statement that it has reached a broker; this node's statement may be needed even so.
  mutating func stated(about node: String) {
    if isReached(node) { unstated.insert(node) }
  }

  /// Notes that this node's statement about another node is stored.
  mutating func isStated(_ node: String) { unstated.remove(node) }

  /// Checks a node again, because a link to it has failed.
  mutating func doubt(_ node: String, at now: MonotonicTime) {
    guard isReached(node) else { return }
    findings[node]?.next = now
    open.insert(node)
  }

  /// The checks that are due, in the order of the nodes' names.
  mutating func takeDue(at now: MonotonicTime) -> [PeerCheck] {
    if open.isEmpty { return [] }
    var due: [PeerCheck] = []
    for node in open.sorted() {
      guard let finding = findings[node], !finding.isUnderWay, finding.next <= now else { continue }
      findings[node]?.isUnderWay = true
      due.append(finding.peer)
    }
    return due
  }

  /// Handles the result of a check.
  ///
  /// - Parameter problem: why the broker can't be reached; nil if it was reached.
  mutating func finished(_ peer: PeerCheck, _ problem: String?, at now: MonotonicTime) {
    guard var finding = findings[peer.node], finding.peer == peer else { return }
    finding.isUnderWay = false
    finding.problem = problem
    if problem == nil {
      finding.failures = 0
      finding.failingSince = nil
      open.remove(peer.node)
      unstated.insert(peer.node)
    } else {
      finding.next = now + min(Self.firstDelay * (1 << min(finding.failures, 4)), Self.longestDelay)
      finding.failures += 1
      finding.failingSince = finding.failingSince ?? now
    }
    findings[peer.node] = finding
  }

  /// Why a node can't be reached; nil if it can be, or hasn't been checked yet.
  func problem(of node: String) -> String? { findings[node]?.problem }

  /// Why nodes haven't been reached for at least `time`, by their names. A node that has just died is among them until it has been silent for a lease.
  func problems(lasting time: Duration, at now: MonotonicTime) -> [String: String] {
    if open.isEmpty { return [:] }
    var problems: [String: String] = [:]
    for node in open {
      guard let since = findings[node]?.failingSince, since + time <= now else { continue }
      problems[node] = findings[node]?.problem
    }
    return problems
  }

  /// The times at which checks are due, or ``problems(lasting:at:)`` may have another result.
  func deadlines(lasting time: Duration) -> [MonotonicTime] {
    open.flatMap { node -> [MonotonicTime] in
      guard let finding = findings[node] else { return [] }
      return [finding.isUnderWay ? nil : finding.next, finding.failingSince.map { $0 + time }].compactMap(
        \.self)
    }
  }
}
