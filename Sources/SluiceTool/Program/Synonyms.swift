/// Words for this program's commands in other systems.
enum Synonyms {
  private static let words: [String: [String]] = [
    "pub": ["publish", "produce", "send", "write"], "sub": ["subscribe", "consume", "read", "tail"],
    "list": ["ls"], "delete": ["rm", "remove", "del"], "remove": ["rm", "delete", "del"],
    "show": ["info", "describe", "get", "inspect"], "create": ["new", "make", "add"],
    "add": ["create", "new"],
    "set": ["update", "alter", "edit"], "move": ["reset", "seek"], "status": ["info"], "topic": ["topics"],
    "cursor": ["cursors"], "group": ["groups"], "connection": ["connections", "client", "clients"],
    "context": ["contexts"], "close": ["kill", "disconnect"], "completions": ["completion"],
  ]

  /// Words whose command is a subcommand of another one.
  private static let elsewhere: [String: String] = [
    "sluice ls": "sluice topic list", "sluice list": "sluice topic list",
    "sluice create": "sluice topic create TOPIC",
    "sluice rm": "sluice topic delete TOPIC", "sluice delete": "sluice topic delete TOPIC",
    "sluice show": "sluice topic show TOPIC", "sluice describe": "sluice topic show TOPIC",
    "sluice purge": "sluice topic purge TOPIC", "sluice trim": "sluice topic trim TOPIC",
    "sluice group delete": "sluice cursor delete TOPIC GROUP",
    "sluice group rm": "sluice cursor delete TOPIC GROUP",
    "sluice group remove": "sluice cursor delete TOPIC GROUP",
    "sluice group move": "sluice cursor move TOPIC GROUP --to START",
    "sluice group reset": "sluice cursor move TOPIC GROUP --to START",
    "sluice group seek": "sluice cursor move TOPIC GROUP --to START",
    "sluice cursor show": "sluice cursor list TOPIC", "sluice cursor info": "sluice cursor list TOPIC",
  ]

  /// The command of `commands` that a word means; nil if it means none of them.
  static func command(meantBy word: String, among commands: [String]) -> String? {
    commands.first { words[$0]?.contains(word) == true }
  }

  /// The command to use instead of one that doesn't exist: "sluice cursor delete TOPIC GROUP" for `group delete`; nil if there is none.
  static func advice(_ name: String, _ word: String) -> String? { elsewhere["\(name) \(word)"] }
}
