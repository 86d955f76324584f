import SluiceIO

/// The servers that a client knows, and the order and times of attempts: events are passed in, and the functions return the next step.
///
/// A value without a clock or a network, with its own seeded random numbers.
struct NATSServerPool {
  struct Server: Hashable {
    var address: NATSAddress
    /// The name that the certificate must contain. Servers name each other by numeric addresses, which certificates often don't contain.
    var certificateName: String
    var isDiscovered = false
  }

  enum Step: Equatable {
    /// Connect to ``current``.
    case connect
    case wait(until: MonotonicTime)
    case giveUp
  }

  private let policy: NATSReconnectPolicy
  private(set) var random: SeededRandom
  /// In the order in which they are tried; the first one is the current one.
  private(set) var servers: [Server]
  private var leftInRound: Int
  private var rounds = 0
  /// When the search for a server began.
  private var begin: MonotonicTime?
  /// Rounds in a row that ended with refusals.
  private var refusals = 0
  private var wasRefused = false
  private var wasUnreachable = false

  /// - Parameter addresses: at least one.
  init(_ addresses: [NATSAddress], policy: NATSReconnectPolicy, seed: UInt64) {
    precondition(!addresses.isEmpty, "a client needs the address of a server")
    self.policy = policy
    random = SeededRandom(seed: seed)
    var known: Set<NATSAddress> = []
    servers = addresses.filter { known.insert($0).inserted }.map {
      Server(address: $0, certificateName: $0.host)
    }
    random.shuffle(&servers)
    leftInRound = servers.count
  }

  var current: Server { servers[0] }

  mutating func start(at now: MonotonicTime) -> Step {
    begin = now
    return .connect
  }

  mutating func connected() {
    rounds = 0
    refusals = 0
    wasRefused = false
    wasUnreachable = false
  }

  /// Called when the connection is lost. The next server is tried after a short random wait, and the lost one last.
  mutating func lost(at now: MonotonicTime) -> Step {
    begin = now
    leftInRound = servers.count
    moveOn()
    return .wait(until: now + random.next(in: .zero...policy.delay(round: 0)))
  }

  /// Called when the client leaves a server that still works.
  mutating func left(at now: MonotonicTime) -> Step {
    begin = now
    leftInRound = servers.count
    moveOn()
    return .connect
  }

  /// Called when an attempt has failed.
  ///
  /// - Parameter isRefusal: whether the server has rejected the credentials.
  mutating func failed(at now: MonotonicTime, isRefusal: Bool) -> Step {
    if isRefusal { wasRefused = true } else { wasUnreachable = true }
    leftInRound -= 1
    moveOn()
    if let begin, let limit = policy.giveUpAfter, now - begin >= limit { return .giveUp }
    if leftInRound > 0 { return .connect }
    refusals = wasRefused && !wasUnreachable ? refusals + 1 : 0
    if let limit = policy.refusals, refusals >= limit { return .giveUp }
    wasRefused = false
    wasUnreachable = false
    leftInRound = servers.count
    var delay = policy.delay(round: rounds)
    rounds += 1
    let spare = Int64(Double(delay.clampedNanoseconds) * min(1, max(0, policy.jitter)))
    if spare > 0 { delay -= random.next(in: .zero ... .nanoseconds(spare)) }
    return .wait(until: now + delay)
  }

  /// Adds the servers that a server names, as `HOST:PORT`. Servers that it no longer names are removed, except for given ones and the current one.
  mutating func learn(_ names: [String]) {
    let named = names.prefix(1_024).compactMap { try? NATSAddress(parsing: $0) }
    let current = current
    servers.removeAll { server in
      server.isDiscovered && server != current
        && !named.contains { $0.host == server.address.host && $0.port == server.address.port }
    }
    var fresh: [Server] = []
    for address in named
    where !(servers + fresh).contains(where: {
      $0.address.host == address.host && $0.address.port == address.port
    }) {
      var address = address
      address.requiresTLS = current.address.requiresTLS
      let name = NumericAddress(address.host) == nil ? address.host : current.certificateName
      fresh.append(Server(address: address, certificateName: name, isDiscovered: true))
    }
    random.shuffle(&fresh)
    servers += fresh
    leftInRound = min(leftInRound, servers.count)
  }

  private mutating func moveOn() {
    servers.append(servers.removeFirst())
  }
}
