import SluiceIO
import SluiceStore

/// Decides which shards a node takes, moves and gives up next, so that each shard ends up at the node to which it belongs.
struct ShardAllotment {
  enum Step: Hashable {
    /// Take a shard that has no owner.
    case take(Int)
    /// End the session of a shard's owner whose messages the engine has removed. The owner may be paused: the engine will then refuse a renewal of that
    /// session, and the shard is free.
    case endSession(ofOwner: ShardRecord)
    /// Close a shard that belongs to another node; nil when there is none.
    case move(Int, term: UInt64, to: String?)
    /// Hand over a closed shard to the node to which it belongs.
    case give(Int, term: UInt64, to: String)
    /// Give up a closed shard that belongs to no other node.
    case free(Int, term: UInt64)
  }

  /// A node with many shards hands over one in so many at a time, so that all of them move soon.
  private static let shardsPerMove = 32
  /// How long nodes that start together have to reach each other before the oldest one takes the shards of all.
  static let settlingTime = Duration.milliseconds(500)

  private let name: String
  private let maximumMoves: Int
  /// The nodes to which shards belong; nil when it must be computed again because a node, a drain or a pin has changed.
  private var placement: (current: Placement, own: Set<Int>)?
  /// Whether a shard may have to be taken, moved or given up. False while the node owns exactly the shards that belong to it and nothing about that changes.
  private var isDue = true
  /// Until when the node takes only shards that another node, dead or live, has left to it; nil after that time.
  private var waitingUntil: MonotonicTime?
  /// Until when the node takes no shards, because nodes that have started together are about to reach each other; nil once another node has been reached.
  private var settlingUntil: MonotonicTime?
  /// Shards that the broker couldn't open, and when they may be taken again.
  private var refused: [Int: MonotonicTime] = [:]

  /// - Parameters:
  ///   - name: the node's name.
  ///   - maximumMoves: the most shards that it opens and closes at a time, unless it has many.
  init(for name: String, maximumMoves: Int) {
    self.name = name
    self.maximumMoves = maximumMoves
  }

  /// Notes that the node has joined, and takes only shards that need it until `time`.
  mutating func wait(until time: MonotonicTime) { waitingUntil = time }

  /// Notes a change of the node's session, or of a lease of its shards.
  mutating func leasesChanged() { isDue = true }

  /// Notes a change of a node, a drain or a pin.
  mutating func nodesChanged() { placement = nil }

  /// Notes that the broker couldn't open a shard.
  mutating func refused(_ shard: Int, until time: MonotonicTime) { refused[shard] = time }

  /// The times at which an action may be due without another event.
  var deadlines: [MonotonicTime] { [waitingUntil, settlingUntil].compactMap(\.self) + refused.values }

  /// The steps that are due, in the order of the shards.
  ///
  /// - Parameters:
  ///   - directory: the node's knowledge, including the number of shards.
  ///   - leases: the node's leases.
  ///   - requests: the node's pending writes.
  ///   - isLeaving: whether it gives up all its shards.
  mutating func steps(
    _ directory: Directory, _ leases: [Int: ShardLeaseState], _ requests: ControlRequests, isLeaving: Bool,
    at now: MonotonicTime
  ) -> [Step] {
    guard let count = directory.shardCount else { return [] }
    if let end = waitingUntil {
      if end <= now {
        waitingUntil = nil
      } else if directory.shards.isEmpty {
        // The nodes of a new cluster join one by one: placement is computed once for all of them.
        return []
      }
    }
    let (placement, belonging) = place(directory, count)
    guard isDue else { return [] }
    // Evaluated at each event until every shard is at its node: when a shard becomes free depends on more than its own messages.
    isDue = leases.count != belonging.count
    // Shards whose first message is pending count, too.
    var moves = leases.count { shard, lease in
      guard lease.term != nil else { return false }
      return !lease.isHeld || !requests.areIdle && requests.isBusy(ControlRecord.shard(shard, nil).subject)
    }
    let mostMoves = max(maximumMoves, leases.count / Self.shardsPerMove)
    var steps: [Step] = []
    // Other shards don't concern this node, so the work of an event grows only with the number of its own shards.
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

  /// The placement, and the shards of this node.
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
