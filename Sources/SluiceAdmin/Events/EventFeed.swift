import SluiceAccess
import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceWire

/// Samples the broker once a second for all watchers, and not at all while there are none.
///
/// Unchecked: belongs to its loop.
final class EventFeed: @unchecked Sendable {
  private let source: any AdminSource
  private let loop: any EventLoop
  private let options: AdminOptions
  private var watchers: [ObjectIdentifier: Watcher] = [:]
  private var rows: EventRows
  private var timer: TimerToken?
  private var isSampling = false
  /// The number of watchers that were rejected because there were too many.
  private(set) var refused = 0

  private static let interval = Duration.seconds(1)
  /// The most connections in an event.
  private static let connections = 100

  /// Returns the latest problems, and all of them by kind; nil if there is no search for problems.
  private let problems: () -> FoundProblems?

  init(
    _ source: any AdminSource, on loop: any EventLoop, _ options: AdminOptions,
    problems: @escaping () -> FoundProblems? = { nil }
  ) {
    self.problems = problems
    self.source = source
    self.loop = loop
    self.options = options
    rows = EventRows(limit: options.limits.topics)
  }

  var count: Int { watchers.count }

  /// - Returns: nil when the limit of watchers is reached.
  func watch(_ topic: String?, as identity: Identity) -> Watcher? {
    guard watchers.count < options.limits.watchers else {
      refused += 1
      return nil
    }
    let watcher = Watcher(identity: identity, topic: topic)
    watchers[ObjectIdentifier(watcher)] = watcher
    // The time after which a browser reconnects, in milliseconds.
    watcher.give(Array("retry: 2000\n\n".utf8))
    if timer == nil { sample() }
    return watcher
  }

  func remove(_ watcher: Watcher) {
    watchers[ObjectIdentifier(watcher)] = nil
    guard watchers.isEmpty else { return }
    if let timer { loop.cancel(timer) }
    timer = nil
    rows.clear()
  }

  /// Ends all watchers before the listener closes.
  func end() {
    for watcher in watchers.values { watcher.end() }
  }

  private func sample() {
    timer = loop.schedule(after: Self.interval) { [weak self] in self?.sample() }
    // At most one sample is in progress, even if it takes longer than the interval.
    guard !isSampling, source.stage != .starting else { return }
    isSampling = true
    let details = watchers.values.contains { $0.topic != nil } ? options.limits.streams : 1
    let request = SnapshotRequest(
      topics: options.limits.topics, subscriptionsPerTopic: details, publicationsPerTopic: details,
      connections: Self.connections, consumersPerTopic: details)
    source.snapshot(request) { [weak self, loop] assemble in
      loop.execute { [weak self] in self?.show(assemble()) }
    }
  }

  private func show(_ snapshot: BrokerSnapshot) {
    isSampling = false
    guard !watchers.isEmpty else { return }
    let (changes, all) = rows.update(
      snapshot, of: BrokerIdentity(of: source, version: options.version), problems())
    let difference = Array(changes.utf8)
    var whole: [UInt8]?
    var details: [String: [UInt8]] = [:]
    for watcher in watchers.values {
      guard mayWatch(watcher) else {
        watcher.end()
        continue
      }
      guard !watcher.isBehind else {
        watcher.needsAll = true
        continue
      }
      if watcher.needsAll, whole == nil { whole = Array(all().utf8) }
      watcher.give(watcher.needsAll ? whole ?? [] : difference)
      watcher.needsAll = false
      guard let topic = watcher.topic else { continue }
      let detail = details[topic] ?? Self.detail(of: topic, in: snapshot)
      details[topic] = detail
      watcher.give(detail)
    }
  }

  private static func detail(of name: String, in snapshot: BrokerSnapshot) -> [UInt8] {
    let topic = snapshot.topics.first { $0.summary.topic == name }
    let missing: JSON = ["name": .text(name), "state": .text("missing")]
    return Array(EventRows.event("topic", topic.map(TopicJSON.detailed) ?? missing).utf8)
  }

  /// Checks the present permissions and the expiry of the credentials.
  private func mayWatch(_ watcher: Watcher) -> Bool {
    guard source.authenticatesClients else { return true }
    guard let identity = source.reconsider(watcher.identity), !identity.hasExpired(at: loop.wallClock) else {
      return false
    }
    return (try? Authorization.check(identity, .events(topic: watcher.topic))) != nil
  }
}

extension Identity {
  /// - Parameter now: milliseconds since 1970.
  func hasExpired(at now: Int64) -> Bool { expires.map { $0 <= now } ?? false }
}

/// The problems of a sample, and all of them by kind.
typealias FoundProblems = (listed: [Problem], kinds: [ProblemKind])

/// The last sample of the topics, so that the next event contains only changes.
struct EventRows {
  /// The topics as JSON, by name, as of the last sample.
  private var rows: [String: String] = [:]
  private let limit: Int

  /// - Parameter limit: the most topics.
  init(limit: Int) {
    self.limit = limit
  }

  /// Returns a sample as two events: the changes since the last sample, and the whole state.
  mutating func update(
    _ snapshot: BrokerSnapshot, of broker: BrokerIdentity, _ problems: FoundProblems? = nil
  ) -> (changes: String, all: () -> String) {
    var changed: [String] = []
    var shown: [String: String] = [:]
    for topic in snapshot.topics.prefix(limit) {
      let name = topic.summary.topic
      let row = TopicJSON.object(topic).description
      shown[name] = row
      if rows[name] != row { changed.append(row) }
    }
    let gone = rows.keys.filter { shown[$0] == nil }
    rows = shown
    let omitted = snapshot.topicCount - shown.count
    func event(topics: some Sequence<String>, gone: [String], isAll: Bool) -> String {
      Self.event(
        "sample",
        [
          "all": .flag(isAll), "broker": BrokerJSON.object(snapshot, of: broker),
          "topics": .array(topics.map { .notation($0) }), "gone": .array(gone.map { .text($0) }),
          "omitted": .exact(omitted),
          "problems": problems.map { .array($0.listed.map(ProblemJSON.object)) } ?? .null,
          "problemKinds": problems.map { .array($0.kinds.map(ProblemJSON.object)) } ?? .null,
          "connections": .array(snapshot.connections.map(BrokerJSON.connection)),
        ])
    }
    return (
      event(topics: changed, gone: gone, isAll: false),
      { event(topics: shown.values, gone: [], isAll: true) }
    )
  }

  /// Drops the last sample. Called when the last watcher has gone.
  mutating func clear() { rows = [:] }

  /// Formats a server-sent event. The data must not contain line breaks.
  static func event(_ name: String, _ data: JSON) -> String { "event: \(name)\ndata: \(data)\n\n" }
}

/// A watcher of the events, with bytes that wait for its connection.
///
/// Unchecked: belongs to the admin listener's loop.
final class Watcher: @unchecked Sendable {
  let identity: Identity
  /// The topic whose details are watched; nil for none.
  let topic: String?
  /// Whether the next sample must be complete: for the first one, and if the last one wasn't sent in time.
  var needsAll = true
  private(set) var hasEnded = false
  /// Makes the connection check for bytes. Called when there are some, and at the end.
  var wake: (() -> Void)?
  /// Arrays that several watchers share.
  private var parts: [[UInt8]] = []

  init(identity: Identity, topic: String?) {
    self.identity = identity
    self.topic = topic
  }

  /// Whether bytes wait for the connection.
  var isBehind: Bool { !parts.isEmpty }

  func give(_ bytes: [UInt8]) {
    guard !hasEnded, !bytes.isEmpty else { return }
    parts.append(bytes)
    wake?()
  }

  /// Ends the events.
  func end() {
    hasEnded = true
    wake?()
  }

  /// Removes and returns the next bytes; nil when there are none now.
  func next() -> [UInt8]? { parts.isEmpty ? nil : parts.removeFirst() }
}
