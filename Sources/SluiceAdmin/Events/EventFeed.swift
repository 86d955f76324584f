import SluiceAccess
import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceWire

/// Samples the broker once a second for all who watch, and not at all while nobody does.
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
  /// Those who couldn't watch because there were too many.
  private(set) var refused = 0

  private static let interval = Duration.seconds(1)
  /// Connections that an event tells one by one.
  private static let connections = 100

  init(_ source: any AdminSource, on loop: any EventLoop, _ options: AdminOptions) {
    self.source = source
    self.loop = loop
    self.options = options
    rows = EventRows(limit: options.limits.topics)
  }

  var count: Int { watchers.count }

  /// - Returns: nil when there are as many as there may be.
  func watch(_ topic: String?, as identity: Identity) -> Watcher? {
    guard watchers.count < options.limits.watchers else {
      refused += 1
      return nil
    }
    let watcher = Watcher(identity: identity, topic: topic)
    watchers[ObjectIdentifier(watcher)] = watcher
    // How long a browser waits before it comes back.
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

  /// The listener is about to close.
  func end() {
    for watcher in watchers.values { watcher.end() }
  }

  private func sample() {
    timer = loop.schedule(after: Self.interval) { [weak self] in self?.sample() }
    // One that takes longer than a second isn't asked for twice.
    guard !isSampling, source.stage != .starting else { return }
    isSampling = true
    let details = watchers.values.contains { $0.topic != nil } ? options.limits.streams : 1
    let request = SnapshotRequest(
      topics: options.limits.topics, subscriptionsPerTopic: details, publicationsPerTopic: details,
      connections: Self.connections)
    source.snapshot(request) { [weak self, loop] assemble in
      loop.execute { [weak self] in self?.show(assemble()) }
    }
  }

  private func show(_ snapshot: BrokerSnapshot) {
    isSampling = false
    guard !watchers.isEmpty else { return }
    let (changes, all) = rows.update(snapshot, version: options.version)
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
    let missing = "{\"name\":\(JSONText.quoted(name)),\"state\":\"missing\"}"
    return Array(EventRows.event("topic", topic.map(TopicJSON.detailed) ?? missing).utf8)
  }

  /// By what holds now: the permissions may be others, and the credentials may have expired.
  private func mayWatch(_ watcher: Watcher) -> Bool {
    guard source.asksClients else { return true }
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
