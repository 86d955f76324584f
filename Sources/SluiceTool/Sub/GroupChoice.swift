import ReactiveCore
import SluiceClient
import SluiceCommand

/// The group that `sluice sub` is a member of.
struct GroupChoice: Equatable {
  var name: String
  var options = GroupOptions()

  static let options = [
    CommandOption(
      "group", value: "NAME",
      help: "Share the records with all other subscribers that name this group: each goes to one of them."),
    CommandOption(
      "ack", value: "WHEN",
      help:
        "When a record of the group is done: auto, when it is sent; explicit, when it is printed, or its command has "
        + "ended with 0. What isn't done is delivered again.", standard: "auto",
      choices: ["auto", "explicit"]),
    CommandOption(
      "order", value: "ORDER",
      help:
        "Which records of the group may be under way at a time: any; by-key, only one of those with the same key.",
      standard: "any", choices: ["any", "by-key"]),
    CommandOption(
      "deadline", value: "TIME",
      help: "How long a record may take before it is delivered to another member of the group: 30s, 5m.",
      standard: "for ever"),
    CommandOption(
      "deliveries", value: "N", help: "How many times the group delivers a record before it is given up.",
      standard: "without a limit"),
    CommandOption("dead-letters", value: "TOPIC", help: "Where records go that the group has given up."),
  ]

  /// Nil without a group.
  init?(_ arguments: ParsedArguments) throws(UsageError) {
    guard let name = arguments.text("group") else {
      for option in Self.options where arguments.text(option.name) != nil {
        throw UsageError("--\(option.name) is about a group; name it with --group")
      }
      return nil
    }
    for option in ["until-live", "lag"] where arguments.has(option) || arguments.text(option) != nil {
      throw UsageError("--\(option) doesn't go with --group: its members share what there is, each a part")
    }
    self.name = name
    options.acknowledgement =
      try arguments.value("ack", Values.choice(["auto": .automatic, "explicit": .explicit])) ?? .automatic
    options.order = try arguments.value("order", Values.choice(["any": .any, "by-key": .byKey])) ?? .any
    options.deadline = try arguments.value("deadline", TimeSpan.parse)
    options.deliveries = try arguments.value("deliveries", Values.count(in: 1...UInt64(UInt32.max)))
      .map { UInt32($0) }
    options.deadLetters = arguments.text("dead-letters")
  }
}

/// Passes on what a group delivers to the `sluice sub` that is a member of it.
struct GroupSubscriber: Subscriber {
  typealias Input = TopicEvent<Delivery>
  typealias Failure = ClientError

  private let subscribing: Subscribing
  let combineIdentifier = CombineIdentifier()

  init(_ subscribing: Subscribing) {
    self.subscribing = subscribing
  }

  func receive(subscription: any Subscription) {
    subscribing.receive(subscription: subscription)
  }

  func receive(_ event: TopicEvent<Delivery>) -> Subscribers.Demand {
    switch event {
    case .record(let delivery): subscribing.receive(delivery)
    case .live(let next): subscribing.receive(.live(nextOffset: next))
    case .lagged(let missed, let next): subscribing.receive(.lagged(missed: missed, nextOffset: next))
    case .restarted(let next): subscribing.receive(.restarted(nextOffset: next))
    case .rewound(let next): subscribing.receive(.rewound(nextOffset: next))
    case .producers(let count): subscribing.receive(.producers(count))
    case .topic(let name, let change): subscribing.receive(.topic(name, change))
    }
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    subscribing.receive(completion: completion)
  }
}

/// Deliveries that were printed, or are about to be, and not acknowledged yet, first in, first out.
struct ReadyDeliveries {
  private var deliveries: [Delivery?] = []
  private var head = 0

  var isEmpty: Bool { head == deliveries.count }

  mutating func append(_ delivery: Delivery) {
    deliveries.append(delivery)
  }

  mutating func removeFirst() -> Delivery? {
    guard head < deliveries.count else { return nil }
    defer {
      deliveries[head] = nil
      head += 1
      if head * 2 > deliveries.count {
        deliveries.removeFirst(head)
        head = 0
      }
    }
    return deliveries[head]
  }
}
