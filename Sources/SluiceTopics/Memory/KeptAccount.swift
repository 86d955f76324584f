import SluiceIO
import SluiceWire
import Synchronization

/// The client, or group of clients, for which the broker keeps something.
package enum KeptOwner: Hashable, Sendable, CustomStringConvertible {
  /// The connections of an authenticated identity.
  case identity(String)
  /// Connections without an identity, by their address.
  case address(PeerOrigin)
  /// Connections without an identity of Unix sockets.
  case unixSockets
  /// Connections of other nodes, on behalf of clients without an identity.
  case nodes
  /// The broker's own parts, and what was restored from the store: the store doesn't contain its owner.
  case broker

  package var description: String {
    switch self {
    case .identity(let name): "identity \(name)"
    case .address(let origin): "address \(origin)"
    case .unixSockets: "the clients of Unix sockets"
    case .nodes: "the cluster's other nodes"
    case .broker: "the broker itself"
    }
  }

  /// The setting that bounds its share.
  package var setting: String {
    if case .identity = self { "--max-memory-per-identity" } else { "--max-memory-per-address" }
  }
}

/// The bytes that one owner makes the broker keep besides records. Charging it charges the broker as well.
///
/// ```
///  a connection's account ──► the account of its identity or address ──► KeptMemory
///    streams, filters …         topics, groups, cursors, producers
/// ```
///
/// From any thread.
package final class KeptAccount: Sendable {
  package let owner: KeptOwner
  /// The account of the identity or address, for the account of a connection.
  private let parent: KeptAccount?
  private let memory: KeptMemory
  /// In bytes; 0 for no limit but the broker's.
  package let share: Int
  /// Bytes of the connection itself, for the account of a connection.
  private let ownBytes: Int
  private let bytes = Atomic(0)
  private let plainBytes = Atomic(0)

  init(_ owner: KeptOwner, share: Int, in memory: KeptMemory) {
    self.owner = owner
    self.share = share
    self.memory = memory
    parent = nil
    ownBytes = 0
  }

  /// The account of one connection of an owner, which is charged with the connection itself as long as it exists.
  package init(ofConnectionOf parent: KeptAccount, bytes: Int) {
    owner = parent.owner
    share = parent.share
    memory = parent.memory
    self.parent = parent
    ownBytes = bytes
    add(bytes, isPlain: true)
  }

  deinit { parent?.add(-ownBytes, isPlain: true) }

  package var used: Int { bytes.load(ordering: .relaxed) }

  /// Whether the account belongs to the same owner.
  func isSame(as other: KeptAccount) -> Bool { (parent ?? self) === (other.parent ?? other) }

  // MARK: Charges

  /// Charges an object that is about to be made.
  ///
  /// - Parameter isPlain: whether it may use the reserve: a topic, a subscription or publication without more, or a request.
  /// - Throws: ``ErrorCode/limitReached`` when the account or the broker may keep no more.
  package func charge(_ size: Int, isPlain: Bool = false) throws(WireError) -> Charge {
    try check(size, isPlain: isPlain)
    return Charge(self, size, isPlain: isPlain)
  }

  /// Charges an object whatever the limits: one that exists already.
  package func take(_ size: Int, isPlain: Bool = false) -> Charge { Charge(self, size, isPlain: isPlain) }

  /// - Throws: ``ErrorCode/limitReached`` when an object of that size is refused.
  package func check(_ size: Int, isPlain: Bool = false) throws(WireError) {
    if let parent { return try parent.check(size, isPlain: isPlain) }
    let exceedsShare = share > 0 && used + size > share
    guard exceedsShare || memory.isExceeded(by: size, isPlain: false) else { return }
    let allowance = memory.limit > 0 ? memory.plainAllowance : share / 8
    let hasAllowance = owner == .broker || plainBytes.load(ordering: .relaxed) + size <= allowance
    if isPlain, hasAllowance, !memory.isExceeded(by: size, isPlain: true) { return }
    throw exceedsShare ? memory.refusal(of: self) : memory.refusal()
  }

  /// Whether objects that aren't plain are refused.
  package var isFull: Bool {
    if let parent { return parent.isFull }
    return share > 0 && used >= share || memory.isFull
  }

  fileprivate func add(_ count: Int, isPlain: Bool) {
    bytes.add(count, ordering: .relaxed)
    if isPlain { plainBytes.add(count, ordering: .relaxed) }
    if let parent { parent.add(count, isPlain: isPlain) } else { memory.add(count) }
  }

  /// The bytes that one object keeps, returned when the charge is released: the object owns it.
  package final class Charge: Sendable {
    package let account: KeptAccount
    private let bytes: Atomic<Int>
    private let isPlain: Bool

    fileprivate init(_ account: KeptAccount, _ count: Int, isPlain: Bool) {
      self.account = account
      self.isPlain = isPlain
      bytes = Atomic(count)
      account.add(count, isPlain: isPlain)
    }

    deinit { account.add(-bytes.load(ordering: .relaxed), isPlain: isPlain) }

    package func add(_ count: Int) {
      guard count != 0 else { return }
      bytes.add(count, ordering: .relaxed)
      account.add(count, isPlain: isPlain)
    }

    /// From one thread at a time.
    package func set(to count: Int) { add(count - bytes.load(ordering: .relaxed)) }

    /// Charges more, unless a limit is reached.
    ///
    /// - Throws: ``ErrorCode/limitReached``.
    package func grow(by count: Int) throws(WireError) {
      try account.check(count)
      add(count)
    }

    package var isFull: Bool { account.isFull }
  }
}
