import Glibc
import SluiceAccess
import SluiceCommand

/// `sluice token`
struct TokenCommand: CommandGroup {
  static var needsBroker: Bool { false }

  static var members: [any Command.Type] {
    [TokenMakeCommand.self, TokenShowCommand.self, TokenKeyCommand.self]
  }

  static let page = CommandPage(
    "sluice token", summary: "make and show the signed tokens that clients prove themselves with",
    operands: [Operand("COMMAND")],
    details: [
      """
      A token says who its bearer is, until when, and perhaps what may be done with which topics (JSON Web Token). Whoever has the key can make them, \
      without a broker; sluiced takes those that are signed with a key in the directory of its --token-keys. A key is replaced by putting another \
      beside it, under another id, and removing the old one when no token needs it any more.
      """
    ],
    examples: [
      .init(
        "A pair of keys, one half of which is the broker's.",
        "sluice token key --output signing.pem --public /etc/sluice/keys/2026.pem"),
      .init(
        "A token that may publish orders for an hour.",
        "sluice token make --key signing.pem --key-id 2026 --subject shop --for 1h --publish 'orders.>'"),
      .init("What a token says.", "sluice token show --file shop.token"),
    ], commands: members.map { $0.page })

  /// Now, in milliseconds since 1970.
  static var now: Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
