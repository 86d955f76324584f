/// Who is authenticated next: each address in its turn, so that one with many attempts keeps only its own waiting.
///
/// A value: attempts come in, the next one goes out. It knows neither threads nor clocks.
struct AttemptQueue<Attempt> {
  enum Next {
    case attempt(Attempt, from: String)
    /// All who wait have to wait for so long.
    case wait(Duration)
    case none
  }

  /// Attempts at a time.
  let limit: Int
  /// Attempts of one address at a time.
  let addressLimit: Int

  private var waiting: [String: [(number: UInt64, attempt: Attempt)]] = [:]
  /// Addresses that have somebody waiting, in the order of their turns.
  private var turns = ReadyQueue<String>()
  private(set) var count = 0

  init(limit: Int, addressLimit: Int) {
    self.limit = limit
    self.addressLimit = addressLimit
  }

  /// - Returns: false when there are too many already.
  mutating func add(_ attempt: Attempt, number: UInt64, from address: String) -> Bool {
    let others = waiting[address]?.count ?? 0
    guard count < limit, others < addressLimit else { return false }
    if others == 0 { turns.append(address) }
    waiting[address, default: []].append((number, attempt))
    count += 1
    return true
  }

  /// Forgets an attempt, if it is still waiting.
  mutating func remove(_ number: UInt64, from address: String) {
    guard let index = waiting[address]?.firstIndex(where: { $0.number == number }) else { return }
    waiting[address]?.remove(at: index)
    count -= 1
    guard waiting[address]?.isEmpty == true else { return }
    waiting[address] = nil
    turns.removeAll { $0 == address }
  }

  /// Takes out the first attempt of the address whose turn it is.
  ///
  /// - Parameter delay: how long an address has to wait from now on.
  mutating func next(_ delay: (String) -> Duration) -> Next {
    var shortest: Duration?
    for _ in 0..<turns.count {
      guard let address = turns.popFirst() else { break }
      let wait = delay(address)
      guard wait <= .zero else {
        turns.append(address)
        shortest = min(shortest ?? wait, wait)
        continue
      }
      guard let first = waiting[address]?.removeFirst() else { continue }
      count -= 1
      if waiting[address]?.isEmpty == true { waiting[address] = nil } else { turns.append(address) }
      return .attempt(first.attempt, from: address)
    }
    return shortest.map { .wait($0) } ?? .none
  }
}
