import SluiceTopics

/// The history of the origin of an attempt to authenticate. Attempts of one standing delay those of another only by their turns.
enum AttemptStanding: Int, CaseIterable {
  /// Its address has logged in before, or is a Unix socket.
  case knownAddress
  /// The identity that it claims has logged in before, from another address.
  case knownIdentity
  case new
  /// Other attempts from its address have failed.
  case failing

  /// The part of all places in the queue that this standing and lower ones may use, in quarters.
  fileprivate var quarters: Int {
    switch self {
    case .knownAddress, .knownIdentity: 4
    case .new: 3
    case .failing: 2
    }
  }
}

/// The order of authentication attempts: standings take turns, and so do the addresses of one standing. An address with many attempts therefore delays only
/// its own, and many addresses that guess delay only each other.
///
/// ```
///  known address  ─ a ─ b ─┐
///  known identity ─ c ─────┼─ one of each in turn ──► verification
///  new            ─ d ─ e ─┤
///  failing        ─ f ─ g ─┘
/// ```
///
/// A value without threads or clocks.
struct AttemptQueue<Address: Hashable, Attempt> {
  enum Next {
    case attempt(Attempt, from: Address)
    /// All attempts in the queue have to wait for at least this time.
    case wait(Duration)
    case none
  }

  /// The most attempts at a time. A quarter is reserved for addresses and identities that have logged in before, another for addresses without failures.
  let limit: Int
  /// The most attempts of one address and standing at a time.
  let addressLimit: Int

  private var lines = [AttemptLines<Address, Attempt>](
    repeating: AttemptLines(), count: AttemptStanding.allCases.count)
  /// The standing that was served last.
  private var last = 0
  var count: Int { lines.reduce(0) { $0 + $1.count } }

  init(limit: Int, addressLimit: Int) {
    self.limit = limit
    self.addressLimit = addressLimit
  }

  /// - Returns: false when a limit is reached.
  mutating func add(
    _ attempt: Attempt, number: UInt64, from address: Address, standing: AttemptStanding = .new
  ) -> Bool {
    let others = lines[standing.rawValue].count(of: address)
    let lower = lines[standing.rawValue...].reduce(0) { $0 + $1.count }
    let most = (limit * standing.quarters + 3) / 4
    guard count < limit, lower < most, others < addressLimit else { return false }
    lines[standing.rawValue].add([(number, attempt)], from: address)
    return true
  }

  /// Removes an attempt, if it still waits.
  mutating func remove(_ number: UInt64, from address: Address) {
    for standing in lines.indices { lines[standing].remove(number, from: address) }
  }

  /// Lowers the standing of a new address after a failed attempt: its other attempts wait with those of failing addresses.
  mutating func failed(_ address: Address) {
    for standing in [AttemptStanding.new, .knownIdentity] {
      let attempts = lines[standing.rawValue].takeAll(from: address)
      if !attempts.isEmpty { lines[AttemptStanding.failing.rawValue].add(attempts, from: address) }
    }
  }

  /// Removes and returns the first attempt of the next standing and address.
  ///
  /// - Parameter delay: returns how long an attempt, and all others of its address, must still wait.
  mutating func next(_ delay: (Attempt) -> Duration) -> Next {
    var shortest: Duration?
    for step in 1...lines.count {
      let standing = (last + step) % lines.count
      if let (attempt, address) = lines[standing].next(&shortest, delay) {
        last = standing
        return .attempt(attempt, from: address)
      }
    }
    return shortest.map { .wait($0) } ?? .none
  }
}

/// The attempts of one standing, by address.
private struct AttemptLines<Address: Hashable, Attempt> {
  private var waiting: [Address: [(number: UInt64, attempt: Attempt)]] = [:]
  /// Addresses with waiting attempts, in the order of their turns.
  private var turns = ReadyQueue<Address>()
  private(set) var count = 0

  /// The number of waiting attempts of an address.
  func count(of address: Address) -> Int { waiting[address]?.count ?? 0 }

  mutating func add(_ attempts: [(number: UInt64, attempt: Attempt)], from address: Address) {
    if waiting[address] == nil { turns.append(address) }
    waiting[address, default: []] += attempts
    count += attempts.count
  }

  mutating func takeAll(from address: Address) -> [(number: UInt64, attempt: Attempt)] {
    guard let attempts = waiting.removeValue(forKey: address) else { return [] }
    count -= attempts.count
    turns.removeAll { $0 == address }
    return attempts
  }

  mutating func remove(_ number: UInt64, from address: Address) {
    guard let index = waiting[address]?.firstIndex(where: { $0.number == number }) else { return }
    waiting[address]?.remove(at: index)
    count -= 1
    guard waiting[address]?.isEmpty == true else { return }
    waiting[address] = nil
    turns.removeAll { $0 == address }
  }

  /// Removes and returns the first attempt of the next address; nil when all have to wait.
  mutating func next(
    _ shortest: inout Duration?, _ delay: (Attempt) -> Duration
  ) -> (attempt: Attempt, address: Address)? {
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
      return (first.attempt, address)
    }
    return nil
  }
}
