import Glibc

/// Random numbers that are the same for the same seed: SplitMix64.
public struct SeededRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  public init(seed: UInt64) {
    state = seed
  }

  /// A generator whose seed is printed, or taken from the environment's `SLUICE_SEED` to repeat a failure.
  public static func printed(for test: String = #function) -> SeededRandom {
    let given = getenv("SLUICE_SEED").flatMap { UInt64(String(cString: $0)) }
    let seed = given ?? UInt64.random(in: 1...0xFFFF_FFFF)
    print("\(test): SLUICE_SEED=\(seed)")
    return SeededRandom(seed: seed)
  }

  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// A separate generator for another thread.
  public mutating func split() -> SeededRandom {
    SeededRandom(seed: next())
  }
}
