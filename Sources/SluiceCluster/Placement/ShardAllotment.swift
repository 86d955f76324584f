import SluiceIO
import SluiceStore

/// Which shards a node takes, moves and gives up next, so that each comes to where it belongs.
struct ShardAllotment {
  enum Step: Hashable {
    /// Take a shard that has no owner.
    case take(Int)
    /// End the session of a shard's owner, of which the engine has removed what it knew. The owner may be paused: from then on the engine refuses a renewal
    /// of that session, and the shard is free.
    case endSession(ofOwner: ShardRecord)
    /// Close a shard that belongs to another node; nil when there is none.
    case move(Int, term: UInt64, to: String?)
    /// Give a shard that is closed to the node that it belongs to.
    case give(Int, term: UInt64, to: String)
    /// Give up a shard that is closed and belongs to no other node.
    case free(Int, term: UInt64)
  }

  /// A node that has many shards gives one in so many away at a time, so that all of them have moved soon.
  private static let shardsPerMove = 32
  /// How long the nodes that start together have to reach each other before the eldest takes the shards of all.
  static let settlingTime = Duration.milliseconds(500)

  private let name: String
  private let maximumMoves: Int
  /// Where shards belong; nil until it is found again after a node, a drain or a pin has changed.
  private var placement: (current: Placement, own: Set<Int>)?
  /// Whether a shard may have to be taken, moved or given up. False while the node holds exactly what belongs to it and nothing about that changes.
  private var isDue = true
  /// Until when the node takes no other shards than those that a dead or living node has left to it; nil once that time is over.
  private var waitingUntil: MonotonicTime?
  /// Until when the node takes no shards, since nodes that have started together are about to reach each other; nil once another node has been reached.
  private var settlingUntil: MonotonicTime?
  /// Shards that the broker couldn't open, and when they may be taken again.
  private var refused: [Int: MonotonicTime] = [:]

  /// - Parameters:
  ///   - name: the node's.
  ///   - maximumMoves: the most shards that it opens and closes at a time, unless it has many.
  init(for name: String, maximumMoves: Int) {
    self.name = name
    self.maximumMoves = maximumMoves
  }

  /// The node has joined: it takes no shards without need until then.
  mutating func wait(until time: MonotonicTime) { waitingUntil = time }

  /// The node's session, or a lease of its shards, has changed.
  mutating func leasesChanged() { isDue = true }

  /// A node, a drain or a pin has changed.
  mutating func nodesChanged() { placement = nil }

  /// The broker couldn't open a shard.
  mutating func refused(_ shard: Int, until time: MonotonicTime) { refused[shard] = time }

  /// When something may be due without another event.
  var deadlines: [MonotonicTime] { [waitingUntil, settlingUntil].compactMap(\.self) + refused.values }

  /// What is due, in the order of the shards.
  ///
  /// - Parameters:
  ///   - directory: what the node knows; with the number of shards.
  ///   - leases: those of the node.
  ///   - requests: its writes that are under way.
  ///   - isLeaving: whether it gives up all that it has.
  mutating func steps(
    _ directory: Directory, _ leases: [Int: ShardLeaseState], _ requests: ControlRequests, isLeaving: Bool,
    at now: MonotonicTime
  ) -> [Step] {
    guard let count = directory.shardCount else { return [] }
    if let end = waitingUntil {
      if end <= now {
        waitingUntil = nil
      } else if directory.shards.isEmpty {
        // The nodes of a new cluster join one by one: where shards belong is found once for all of them.
        return []
      }
    }
    let (placement, belonging) = place(directory, count)
    guard isDue else { return [] }
    // Again at each event until everything is where it belongs: when a shard becomes free depends on more than its own messages.
    isDue = leases.count != belonging.count
    // Those whose first message is under way count, too.
    var moves = leases.count { shard, lease in
      guard lease.term != nil else { return false }
      return !lease.isHeld || !requests.areIdle && requests.isBusy(ControlRecord.shard(shard, nil).subject)
    }
    let mostMoves = max(maximumMoves, leases.count / Self.shardsPerMove)
    var steps: [Step] = []
    // The others have nothing to do with this node: the work of an event grows with the number of its own shards only.
    for shard in belonging.union(leases.keys).sorted() {
      let lease = leases[shard] ?? ShardLeaseState()
      if !lease.isHeld || !belonging.contains(shard) { isDue = true }
      switch lease.phase {
      case .none:
        guard !isLeaving, belonging.contains(shard), refused[shard].map({ $0 <= now }) ?? true,
          waitingUntil == nil || directory.isWaiting(shard), settlingUntil.map({ $0 <= now }) ?? true
        else { continue }
        guard directory.owner(of: shard) == nil else {
          if let owner = directory.forgottenOwner(of: shard), owner.owner != name {
            steps.append(.endSession(ofOwner: owner))
          }
          continue
        }
        refused[shard] = nil
        steps.append(.take(shard))
      case .held(let term):
        if belonging.contains(shard) { continue }
        let target = placement.target(of: shard)
        guard target != nil || isLeaving, moves < mostMoves else { continue }
        moves += 1
        steps.append(.move(shard, term: term, to: target))
      case .closing: break
      case .releasing(let term):
        if let target = placement.target(of: shard), target != name {
          steps.append(.give(shard, term: term, to: target))
        } else {
          steps.append(.free(shard, term: term))
        }
      }
    }
    return steps
  }

  /// Where shards belong, and those of this node.
  private mutating func place(_ directory: Directory, _ count: Int) -> (current: Placement, own: Set<Int>) {
    if let placement { return placement }
    let current = Placement(directory)
    settlingUntil = directory.lastJoin.map { $0 + Self.settlingTime }
    let own = Set((0..<count).lazy.filter { [name] in current.target(of: $0) == name })
    placement = (current, own)
    isDue = true
    return (current, own)
  }
}
