import SluiceClient
import SluiceCommand

/// The group that `sluice sub` is a member of.
struct GroupChoice: Equatable {
  var name: String
  var options = GroupOptions()
  /// How long a record waits whose command has failed; nil for the group's backoff.
  var retryDelay: Duration?

  /// A command that exits with it (`EX_DATAERR` of `sysexits.h`) rejects its record; any other failure is a retry.
  static let rejectingStatus: Int32 = 65

  static let options = [
    CommandOption(
      "group", value: "NAME",
      help: "Join this group: each record goes to one of its members."),
    CommandOption(
      "ack", value: "WHEN",
      help:
        "When a record of the group is done: auto, when it is sent; explicit, when it is printed, or its command has "
        + "ended with 0. A command that ends with 65 rejects its record; after any other failure the record is retried.",
      standard: "auto",
      choices: ["auto", "explicit"]),
    CommandOption(
      "order", value: "ORDER",
      help:
        "Which records of the group may be delivered at the same time: any; by-key, only one record of a key.",
      standard: "any", choices: ["any", "by-key"]),
    CommandOption(
      "deadline", value: "TIME",
      help: "How long a member may take for a record before another member gets it: 30s, 5m.",
      standard: "forever"),
    CommandOption(
      "deliveries", value: "N", help: "How many times the group delivers a record before it gives it up.",
      standard: "no limit"),
    CommandOption("dead-letters", value: "TOPIC", help: "The topic for records that the group gives up."),
    CommandOption(
      "retry-backoff", value: "MIN..MAX",
      help:
        "The delay of a retry: MIN after the first delivery of a record, twice as long after each further one, at most MAX: 1s..5m.",
      standard: "no delay"),
    CommandOption(
      "retry-after", value: "TIME",
      help: "The delay of this member's retries, instead of the group's --retry-backoff: 10s.",
      standard: "by --retry-backoff"),
  ]

  /// Nil without a group.
  init?(_ arguments: ParsedArguments) throws(UsageError) {
    guard let name = arguments.text("group") else {
      for option in Self.options where arguments.text(option.name) != nil {
        throw UsageError("--\(option.name) needs --group NAME")
      }
      return nil
    }
    for option in ["until-live", "lag"] where arguments.has(option) || arguments.text(option) != nil {
      throw UsageError("--\(option) and --group exclude each other: a member gets only a part of the records")
    }
    self.name = name
    options.acknowledgement =
      try arguments.value("ack", Values.choice(["auto": .automatic, "explicit": .explicit])) ?? .automatic
    options.order = try arguments.value("order", Values.choice(["any": .any, "by-key": .byKey])) ?? .any
    options.deadline = try arguments.value("deadline", TimeSpan.parse)
    options.deliveries = try arguments.value("deliveries", Values.count(in: 1...UInt64(UInt32.max)))
      .map { UInt32($0) }
    options.deadLetters = arguments.text("dead-letters")
    options.retryBackoff = try arguments.value("retry-backoff", TimeSpan.range)
    retryDelay = try arguments.value("retry-after", TimeSpan.parse)
  }
}

/// A queue, first in, first out.
struct Fifo<Value> {
  private var values: [Value?] = []
  private var head = 0

  var isEmpty: Bool { head == values.count }

  mutating func append(_ value: Value) {
    values.append(value)
  }

  mutating func removeFirst() -> Value? {
    guard head < values.count else { return nil }
    defer {
      values[head] = nil
      head += 1
      // At half of the array, so that the amortized cost per value is constant.
      if head * 2 > values.count {
        values.removeFirst(head)
        head = 0
      }
    }
    return values[head]
  }
}
