import Synchronization

/// Makes epochs of a broker's identity and a counter, so that none comes twice in a broker's epoch and, as far as chance allows, in
/// two. From any thread.
final class EpochSource: Sendable {
  private let identity: UInt64
  private let last = Atomic<UInt64>(0)

  init(identity: UInt64) {
    self.identity = identity
  }

  /// Never 0, which on the wire means any epoch.
  func next() -> UInt64 {
    // SplitMix64's finalizer: distinct epochs stay distinct, and look unlike each other.
    var mixed = identity &+ last.add(1, ordering: .relaxed).newValue &* 0x9E37_79B9_7F4A_7C15
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    mixed ^= mixed >> 31
    return mixed == 0 ? 1 : mixed
  }
}
