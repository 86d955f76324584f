import SluiceIO

/// Delays attempts to guess credentials, by the address that they come from.
///
/// The first few failures from an address cost nothing. After that each one doubles the time until the next attempt from there may be made, up to a
/// ceiling. One failure is forgotten for each ``Settings/memory`` that passes, and one more, within that time, for an attempt that succeeds: an attacker can't
/// buy guesses with valid credentials.
///
/// A value, without a clock. The table has a limit; when it is full, those with the fewest failures are forgotten first, and addresses that find no place in it share
/// one. Having an address forgotten takes more failures, each from another address, than it saves.
public struct AttemptLimiter: Sendable {
  public struct Settings: Sendable {
    /// Failures that cost nothing.
    public var free = 4
    /// How long the first one after that is waited for.
    public var first = Duration.milliseconds(250)
    /// The longest time between two attempts from one address.
    public var ceiling = Duration.seconds(30)
    /// The same for addresses that share an entry, since some of them haven't failed.
    public var sharedCeiling = Duration.seconds(1)
    /// How long it takes to forget one failure.
    public var memory = Duration.seconds(60)
    /// Addresses that are remembered.
    public var capacity = 10_000

    public init() {}
  }

  private let settings: Settings
  private var places: [PeerOrigin: Int] = [:]
  private var entries: [Entry] = []
  /// Shared by addresses without an entry of their own.
  private var shared: AttemptRecord
  /// Where looking for a place began that could be had.
  private var hand = 0

  private struct Entry {
    var source: PeerOrigin
    var record: AttemptRecord
  }

  /// How many entries are examined when one has to be removed.
  private static let sample = 16

  public init(_ settings: Settings = Settings()) {
    self.settings = settings
    shared = AttemptRecord()
  }

  /// How long an attempt has to wait; zero when it may be made now.
  ///
  /// Call it just before credentials are verified, and again after the delay: until then other attempts from the same address may have failed.
  ///
  /// - Parameters:
  ///   - host: a numeric address. Of IPv6 the first 64 bits count, which is what a customer gets. Anything else, like nil for a Unix socket, never waits.
  ///   - now: in nanoseconds, of a clock that doesn't go back.
  public func delay(for host: String?, at now: UInt64) -> Duration {
    guard let source = Self.source(of: host) else { return .zero }
    if let place = places[source] {
      return entries[place].record.delay(at: now, settings, ceiling: settings.ceiling)
    }
    guard entries.count >= settings.capacity else { return .zero }
    return shared.delay(at: now, settings, ceiling: settings.sharedCeiling)
  }

  /// Whether an attempt from there has failed, and isn't forgotten yet.
  public func hasFailed(_ host: String?, at now: UInt64) -> Bool {
    guard let source = Self.source(of: host), let place = places[source] else { return false }
    return entries[place].record.failures(at: now, settings) > 0
  }

  /// An attempt from there has failed.
  public mutating func failed(_ host: String?, at now: UInt64) {
    guard let source = Self.source(of: host) else { return }
    if let place = places[source] ?? makePlace(for: source, at: now) {
      entries[place].record.add(at: now, settings)
    } else {
      shared.add(at: now, settings)
    }
  }

  /// An attempt from there has succeeded.
  public mutating func succeeded(_ host: String?, at now: UInt64) {
    guard let source = Self.source(of: host), let place = places[source] else { return }
    entries[place].record.forgive(at: now, settings)
  }

  /// Addresses that are remembered now.
  public var count: Int { entries.count }

  private static func source(of host: String?) -> PeerOrigin? { host.flatMap { PeerOrigin(numeric: $0) } }

  /// Nil when all examined entries have failed more often.
  private mutating func makePlace(for source: PeerOrigin, at now: UInt64) -> Int? {
    if entries.count < settings.capacity {
      places[source] = entries.count
      entries.append(Entry(source: source, record: AttemptRecord()))
      return entries.count - 1
    }
    guard !entries.isEmpty else { return nil }
    var best: (place: Int, failures: Int)?
    for _ in 0..<min(Self.sample, entries.count) {
      hand = (hand + 1) % entries.count
      let failures = entries[hand].record.failures(at: now, settings)
      if failures < best?.failures ?? .max { best = (hand, failures) }
    }
    // An address that doesn't have to wait yet loses least.
    guard let best, best.failures <= 1 else { return nil }
    places[entries[best.place].source] = nil
    places[source] = best.place
    entries[best.place] = Entry(source: source, record: AttemptRecord())
    return best.place
  }
}
