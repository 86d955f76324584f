import SluiceAdmin
import SluiceCommand
import SluiceIO

/// Where health, metrics and the dashboard are.
struct AdminSettings {
  /// Nil for nowhere.
  var address: SocketAddress? = .host("127.0.0.1", port: 7421)
  /// Topics that have lines of their own in the metrics.
  var topics = 1_000
  var limits = AdminLimits()
}

extension DaemonSettings {
  static func adminSettings() -> [Setting] {
    [
      Setting(
        "admin", "ADDR", \.admin.address,
        "Health, metrics, an API and a page about the broker, over HTTP: HOST:PORT, [V6]:PORT, unix:PATH, or off.",
        read: { text throws(ValueError) in text == "off" ? nil : try Values.address(text) },
        write: { $0?.description ?? "off" }),
      .count(
        "admin-topics", \.admin.topics, in: 1...100_000,
        "Topics with lines of their own in the metrics; the others are summed in one."),
    ]
  }

  /// - Throws: `UsageError` for an address with TLS, and for one at which every visitor could see everything although no setting allows that.
  func checkAdmin() throws(UsageError) {
    guard let address = admin.address else { return }
    if address.hasTLS {
      throw UsageError(
        "--admin: the admin listener speaks HTTP without TLS; leave out tls://, and put a proxy with TLS in front if others shall reach it"
      )
    }
    guard address.isReachedByOthers, !access.authenticatesClients, !access.allowsUnauthenticated else {
      return
    }
    throw UsageError(
      "--admin: every visitor that reaches \(address) could see every topic and its records; authenticate visitors with --users FILE or --token-keys DIR, or "
        + "allow it with --allow-unauthenticated")
  }
}

extension DaemonSettings {
  /// Bounds on what visitors of the admin listener can make it do.
  static func adminLimits() -> [Setting] {
    let (count, bytes) = (UInt64(1)...1_000_000, 1...1 << 30)
    return [
      .count(
        "admin-connections", \.admin.limits.connections, in: 1...10_000,
        "Connections to the admin listener at a time; others wait until there is room."),
      .count(
        "admin-watchers", \.admin.limits.watchers, in: 0...10_000,
        "Pages and programs that watch its events at a time."),
      .seconds(
        "admin-idle-timeout", \.admin.limits.idle,
        "How long nothing may go to or from a connection to it."),
      .seconds(
        "admin-request-timeout", \.admin.limits.head,
        "How long a request may take to come; less when there are nearly as many connections as there may be."
      ),
      .seconds(
        "admin-answer-timeout", \.admin.limits.answer, "How long a visitor may take to read an answer."),
      .seconds(
        "admin-broker-timeout", \.admin.limits.source,
        "How long the broker may take to say what an answer is made of."),
      .size(
        "admin-connection-bytes", \.admin.limits.connectionBytes, in: 4 << 10...16 << 20,
        "Memory of a connection to it; the head of a request has to fit into it."),
      .count("admin-list-topics", \.admin.limits.topics, in: count, "Topics in one answer."),
      .count(
        "admin-list-connections", \.admin.limits.listedConnections, in: count, "Connections in one answer."),
      .count(
        "admin-list-streams", \.admin.limits.streams, in: count,
        "Subscriptions, and publications, of a topic in one answer."),
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
  /// A time of which only whole seconds count, rounded up.
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
