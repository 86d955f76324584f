import SluiceAdmin
import SluiceBroker
import SluiceCommand
import SluiceIO

/// The settings of the admin listener: health, metrics and the dashboard.
struct AdminSettings {
  /// Nil for no admin listener.
  var address: SocketAddress? = .host("127.0.0.1", port: 7421)
  /// The most topics with lines of their own in the metrics.
  var topics = 1_000
  /// The most groups, and the most durable cursors, with lines of their own in the metrics.
  var groups = 1_000
  var cursors = 0
  /// The length of the broker's history; zero for none.
  var history = Duration.seconds(25 * 3_600)
  /// The most topics with a history.
  var historyTopics = 100
  /// The thresholds at which a lag, and a producer's wait, become problems.
  var problemLag = Duration.seconds(60)
  var problemHold = Duration.seconds(10)
  /// Whether visitors with the permission may change topics and close connections.
  var actions = false
  var limits = AdminLimits()

  /// The thresholds of problems, both on the admin listener and for clients that request problems.
  var problemLimits: ProblemLimits {
    var limits = ProblemLimits()
    limits.lag = UInt64(problemLag.clampedNanoseconds / 1_000_000)
    limits.hold = UInt64(problemHold.clampedNanoseconds / 1_000_000)
    return limits
  }
}

extension DaemonSettings {
  static func adminSettings() -> [Setting] {
    [
      Setting(
        "admin", "ADDR", \.admin.address,
        "Health, metrics, an API and a page about the broker, over HTTP: HOST:PORT, [V6]:PORT, either behind tls://, unix:PATH, or off.",
        read: { text throws(ValueError) in text == "off" ? nil : try Values.address(text) },
        write: { $0?.description ?? "off" }),
      .count(
        "admin-topics", \.admin.topics, in: 1...100_000,
        "Topics with metrics of their own; the others are added up in one."),
      .count(
        "admin-groups", \.admin.groups, in: 0...100_000,
        "Groups with metrics of their own, of all topics together."),
      .count(
        "admin-cursors", \.admin.cursors, in: 0...100_000,
        "Durable cursors with metrics of their own, of all topics together. The largest lag of each topic is always included."
      ),
      .duration(
        "admin-history", \.admin.history, in: .zero ... .seconds(30 * 86_400),
        "How long to keep the history of the broker and its topics, for charts; 0s keeps none, and the page shows no problems."
      ),
      .count(
        "admin-history-topics", \.admin.historyTopics, in: 0...10_000,
        "The most active topics that have a history; each takes about 67 KB for 25h."),
      .duration(
        "admin-problem-lag", \.admin.problemLag, in: .milliseconds(100) ... .seconds(365 * 86_400),
        "The age of its next record from which the lag of a subscriber, cursor or group is a problem."),
      .duration(
        "admin-problem-hold", \.admin.problemHold, in: .milliseconds(100) ... .seconds(365 * 86_400),
        "The time without demand from which a blocked producer is a problem."),
      .choice(
        "admin-actions", "on|off", \.admin.actions,
        "Whether visitors with the permission may create, change, trim and delete topics and close connections there.",
        ["off": false, "on": true]),
    ]
  }

  /// - Throws: `UsageError` for an address at which every visitor could see everything without an explicit permission.
  func checkAdmin() throws(UsageError) {
    guard let address = admin.address else { return }
    guard address.isReachedByOthers, !access.authenticatesClients, !access.allowsUnauthenticated else {
      return
    }
    throw UsageError(
      "--admin: every visitor that reaches \(address) could see every topic and its records; authenticate visitors with --users FILE or --token-keys DIR, or "
        + "allow it with --allow-unauthenticated")
  }
}

extension DaemonSettings {
  /// Limits on the work that visitors of the admin listener can cause.
  static func adminLimits() -> [Setting] {
    let (count, bytes) = (UInt64(1)...1_000_000, 1...1 << 30)
    return [
      .count(
        "admin-connections", \.admin.limits.connections, in: 1...10_000,
        "Connections to the admin listener at a time. An eighth as many more wait; others are refused."),
      .count(
        "admin-watchers", \.admin.limits.watchers, in: 0...10_000,
        "Pages and programs that receive its events at a time."),
      .seconds(
        "admin-idle-timeout", \.admin.limits.idle,
        "How long a connection to the admin listener may be idle."),
      .seconds(
        "admin-request-timeout", \.admin.limits.head,
        "How long a request may take to arrive; less if the number of connections is near its limit."
      ),
      .seconds(
        "admin-answer-timeout", \.admin.limits.answer, "How long a visitor may take to read an answer."),
      .seconds(
        "admin-broker-timeout", \.admin.limits.source,
        "How long the broker may take to provide the data of an answer."),
      .size(
        "admin-connection-bytes", \.admin.limits.connectionBytes, in: 4 << 10...16 << 20,
        "The longest head of a request."),
      .count("admin-list-topics", \.admin.limits.topics, in: count, "Topics in one answer."),
      .count(
        "admin-list-connections", \.admin.limits.listedConnections, in: count, "Connections in one answer."),
      .count(
        "admin-list-streams", \.admin.limits.streams, in: count,
        "Subscriptions, and publications, of a topic in one answer."),
      .count(
        "admin-list-consumers", \.admin.limits.consumers, in: count,
        "Durable cursors, and groups, in one answer."),
      .count("admin-list-records", \.admin.limits.records, in: count, "Records of a topic in one answer."),
      .size(
        "admin-list-bytes", \.admin.limits.recordBytes, in: bytes,
        "Bytes of those records; longer ones are left out."),
      .size(
        "admin-payload-bytes", \.admin.limits.payloadBytes, in: bytes,
        "Bytes of a record's payload that are shown."),
    ]
  }
}

extension Setting {
  /// A time in whole seconds, rounded up.
  fileprivate static func seconds(
    _ name: String, _ target: WritableKeyPath<DaemonSettings, Int>, _ help: String
  ) -> Setting {
    Setting(
      name, "TIME", target, help,
      read: { text throws(ValueError) in
        let (seconds, attoseconds) = try TimeSpan.parse(text).components
        guard (0..<86_400).contains(seconds), seconds > 0 || attoseconds > 0 else {
          throw ValueError("'\(text)' isn't more than 0s and less than 1d")
        }
        return Int(seconds) + (attoseconds > 0 ? 1 : 0)
      },
      write: { TimeSpan.exact(.seconds($0)) })
  }
}
