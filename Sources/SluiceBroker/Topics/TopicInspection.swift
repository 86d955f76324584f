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
    var subscriptions: [Consumer.Shown] = []
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
        let subscriptions = Array(
          tap.subscriptions.compactMap(\.shown).sorted { Self.precedes($0.info, $1.info) }.prefix(Self.listed)
        )
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
    let subscriptions = Self.holders(findings.subscriptions, of: findings.publications)
    return TopicInfo(
      summary: topic.summary, settings: topic.settings,
      subscriptions: Array(subscriptions.sorted(by: Self.precedes).prefix(Self.listed)),
      publications: Array(findings.publications.sorted { $0.connection < $1.connection }.prefix(Self.listed)))
  }

  /// Those who hold up producers come first.
  private static func precedes(_ left: TopicInfo.Subscription, _ right: TopicInfo.Subscription) -> Bool {
    (left.holding == 0 ? 1 : 0, left.connection, left.stream)
      < (right.holding == 0 ? 1 : 0, right.connection, right.stream)
  }

  /// Of the subscriptions that may hold up producers, those that do: nobody while no producer waits, else the ones that have
  /// asked for least, and those that have taken least. None for longer than a producer has been waiting.
  private static func holders(
    _ subscriptions: [Consumer.Shown], of publications: [TopicInfo.Publication]
  ) -> [TopicInfo.Subscription] {
    let waiting = publications.map(\.waiting).max() ?? 0
    let candidates = subscriptions.filter { $0.info.holding > 0 }
    let leastAsked = candidates.map(\.askedThrough).min()
    let leastTaken = candidates.map(\.info.nextOffset).min()
    return subscriptions.map { subscription in
      var info = subscription.info
      let isHolder = subscription.askedThrough == leastAsked || info.nextOffset == leastTaken
      info.holding = isHolder ? min(info.holding, waiting) : 0
      return info
    }
  }
}

extension Publication {
  /// As it is shown to people. On its loop only.
  var info: TopicInfo.Publication {
    let credit = connection.session.publication(stream)?.records ?? Credit()
    let now = connection.context.loop.now
    return TopicInfo.Publication(
      connection: connection.id, client: connection.clientName, stream: stream, granted: credit.granted,
      received: credit.spent, waiting: heldUpSince.map { max((now - $0).wholeMilliseconds, 1) } ?? 0)
  }
}

extension Duration {
  var wholeMilliseconds: UInt64 {
    let (seconds, attoseconds) = components
    return UInt64(clamping: seconds * 1000 + attoseconds / 1_000_000_000_000_000)
  }
}
