import SluiceTopics

/// The order of authentication attempts: addresses take turns, so that one with many attempts only delays its own.
///
/// A value without threads or clocks.
struct AttemptQueue<Address: Hashable, Attempt> {
  enum Next {
    case attempt(Attempt, from: Address)
    /// All attempts in the queue have to wait for at least this time.
    case wait(Duration)
    case none
  }

  /// The most attempts at a time.
  let limit: Int
  /// The most attempts of one address at a time.
  let addressLimit: Int

  private var waiting: [Address: [(number: UInt64, attempt: Attempt)]] = [:]
  /// Addresses with waiting attempts, in the order of their turns.
  private var turns = ReadyQueue<Address>()
  private(set) var count = 0

  init(limit: Int, addressLimit: Int) {
    self.limit = limit
    self.addressLimit = addressLimit
  }

  /// - Returns: false when a limit is reached.
  mutating func add(_ attempt: Attempt, number: UInt64, from address: Address) -> Bool {
    let others = waiting[address]?.count ?? 0
    guard count < limit, others < addressLimit else { return false }
    if others == 0 { turns.append(address) }
    waiting[address, default: []].append((number, attempt))
    count += 1
    return true
  }

  /// Removes an attempt, if it is still waiting.
  mutating func remove(_ number: UInt64, from address: Address) {
    guard let index = waiting[address]?.firstIndex(where: { $0.number == number }) else { return }
    waiting[address]?.remove(at: index)
    count -= 1
    guard waiting[address]?.isEmpty == true else { return }
    waiting[address] = nil
    turns.removeAll { $0 == address }
  }

  /// Takes out the first attempt of the address whose turn it is.
  ///
  /// - Parameter delay: how long an attempt, and all others of its address, have to wait from now on.
  mutating func next(_ delay: (Attempt) -> Duration) -> Next {
    var shortest: Duration?
    for _ in 0..<turns.count {
      guard let address = turns.popFirst(), let first = waiting[address]?.first else { break }
      let wait = delay(first.attempt)
      guard wait <= .zero else {
        turns.append(address)
        shortest = min(shortest ?? wait, wait)
        continue
      }
      waiting[address]?.removeFirst()
      count -= 1
      if waiting[address]?.isEmpty == true { waiting[address] = nil } else { turns.append(address) }
      return .attempt(first.attempt, from: address)
    }
    return shortest.map { .wait($0) } ?? .none
  }
}
