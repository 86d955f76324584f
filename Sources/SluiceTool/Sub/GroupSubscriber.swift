import ReactiveCore
import SluiceClient

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
    case .topic(let name, let news): subscribing.receive(.topic(name, news))
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
