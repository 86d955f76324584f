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

  /// - Throws: `UsageError` for an address with TLS, and for one where everybody could see everything without that having been said.
  func checkAdmin() throws(UsageError) {
    guard let address = admin.address else { return }
    if address.hasTLS {
      throw UsageError(
        "--admin: the admin listener speaks HTTP without TLS; leave out tls://, and put a proxy with TLS in front if others shall reach it"
      )
    }
    guard address.isReachedByOthers, !access.asksClients, !access.allowsUnauthenticated else { return }
    throw UsageError(
      "--admin: whoever reaches \(address) could see every topic and its records; say who may with --users FILE or --token-keys DIR, or that "
        + "everybody may with --allow-unauthenticated")
  }
}
