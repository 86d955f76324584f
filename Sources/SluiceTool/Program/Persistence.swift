import SluiceClient
import SluiceCommand

/// What a command does when it loses its connection, and whether it says so.
struct Persistence {
  /// Nil: it ends.
  var policy: ReconnectPolicy?
  var isQuiet = false

  static let off = Persistence(policy: nil)

  /// How long it tries by default: as long as it takes to start a broker anew, not so long that a script hangs.
  private static let patience = Duration.seconds(60)

  static let options = [
    CommandOption(
      "reconnect",
      help:
        "Try again for ever when the connection is lost, or there is no broker yet; without this option, for a minute when it is lost."
    ),
    CommandOption("no-reconnect", help: "End when the connection is lost."),
  ]

  static let details = """
    When the connection is lost, it makes another, to the next of the servers, and goes on where it was; it says so on standard \
    error. It fails when there is none within a minute.
    """

  init(policy: ReconnectPolicy?) {
    self.policy = policy
  }

  init(_ arguments: ParsedArguments) throws(UsageError) {
    try arguments.allowOne(of: "reconnect", "no-reconnect")
    isQuiet = arguments.has("quiet")
    guard !arguments.has("no-reconnect") else { return }
    var policy = ReconnectPolicy()
    policy.maximumDelay = .seconds(5)
    // The first connection as well, for a program that is started before its broker.
    policy.includesFirst = arguments.has("reconnect")
    if !arguments.has("reconnect") { policy.giveUpAfter = Self.patience }
    self.policy = policy
  }
}
