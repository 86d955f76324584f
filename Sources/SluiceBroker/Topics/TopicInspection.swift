import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

/// Asks every loop who is attached to a topic, and puts the answers together.
final class TopicInspection: Sendable {
  /// So many of each are listed; the counts are of all. With the longest names they fit the smallest frame that a client
  /// may take: 62 KB.
  private static let listed = 100

  private struct Findings {
    var outstanding: Int
    var subscriptions: [TopicInfo.Subscription] = []
    var publications: [TopicInfo.Publication] = []
  }

  private let topic: Topic
  private let taps: [TopicTap]
  private let findings: Mutex<Findings>

  init(_ topic: Topic) {
    self.topic = topic
    taps = topic.taps
    findings = Mutex(Findings(outstanding: taps.count))
  }

  /// Calls `completion` once, on some loop or at once.
  func run(_ completion: @escaping @Sendable (TopicInfo) -> Void) {
    guard !taps.isEmpty else { return completion(result(Findings(outstanding: 0))) }
    for tap in taps {
      tap.loop.loop.execute { [self] in
        let subscriptions = tap.subscriptions.prefix(Self.listed).map(\.info)
        let publications = tap.publications.prefix(Self.listed).map(\.info)
        let finished = findings.withLock { findings -> Findings? in
          findings.subscriptions += subscriptions
          findings.publications += publications
          findings.outstanding -= 1
          return findings.outstanding == 0 ? findings : nil
        }
        if let finished { completion(result(finished)) }
      }
    }
  }

  private func result(_ findings: Findings) -> TopicInfo {
    TopicInfo(
      summary: topic.summary, settings: topic.settings,
      subscriptions: Array(
        findings.subscriptions.sorted { $0.connection < $1.connection }.prefix(Self.listed)),
      publications: Array(findings.publications.sorted { $0.connection < $1.connection }.prefix(Self.listed)))
  }
}

extension Subscription {
  /// As it is shown to people. On its loop only.
  var info: TopicInfo.Subscription {
    TopicInfo.Subscription(
      connection: connection.id, client: connection.clientName, stream: stream,
      state: isLive ? .live : .replaying, nextOffset: cursor.nextOffset, granted: credit.granted,
      sent: credit.spent)
  }
}

extension Publication {
  /// As it is shown to people. On its loop only.
  var info: TopicInfo.Publication {
    let credit = connection.session.publication(stream) ?? Credit()
    return TopicInfo.Publication(
      connection: connection.id, client: connection.clientName, stream: stream, granted: credit.granted,
      received: credit.spent)
  }
}
