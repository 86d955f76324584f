import SluiceClient
import SluiceCommand

/// Which records of a topic are wanted, as options.
enum FilterOptions {
  static let options = [
    CommandOption("key", value: "KEY", help: "Only records with this key."),
    CommandOption("key-prefix", value: "TEXT", help: "Only records whose key begins so."),
    CommandOption("has-key", help: "Only records that have a key."),
    CommandOption(
      "header", value: "NAME=VALUE", help: "Only records that have this header; several must all be there.",
      isRepeatable: true),
    CommandOption(
      "header-prefix", value: "NAME=TEXT",
      help: "Only records that have a header of that name whose value begins so.", isRepeatable: true),
    CommandOption(
      "has-header", value: "NAME", help: "Only records that have a header of that name.", isRepeatable: true),
  ]

  static let details = """
    The broker sends only what all of --key, --key-prefix, --has-key, --header, --header-prefix and --has-header let through, \
    and counts nothing else as asked for.
    """

  static func filter(_ arguments: ParsedArguments) throws(UsageError) -> RecordFilter {
    var filter = RecordFilter.all
    if let key = arguments.text("key") { filter = filter && .key(equals: key) }
    if let prefix = arguments.text("key-prefix") { filter = filter && .key(hasPrefix: prefix) }
    if arguments.has("has-key") { filter = filter && .hasKey }
    for (name, value) in try arguments.values("header", pair) {
      filter = filter && .header(name, equals: value)
    }
    for (name, prefix) in try arguments.values("header-prefix", pair) {
      filter = filter && .header(name, hasPrefix: prefix)
    }
    for name in arguments.texts("has-header") { filter = filter && .hasHeader(name) }
    do {
      try filter.validate()
    } catch {
      throw UsageError(error.message)
    }
    return filter
  }

  private static func pair(_ text: String) throws(ValueError) -> (String, String) {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty else {
      throw ValueError("'\(text)' isn't a header; write NAME=VALUE")
    }
    return (String(parts[0]), String(parts[1]))
  }
}
