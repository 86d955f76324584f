import ReactiveCore

/// The error that tests fail with.
package struct Oops: Error, Equatable {
  package var number: Int

  package init(number: Int = 0) {
    self.number = number
  }
}

/// Something that happened at one of the two ends of a pipeline under test.
package enum Happening: Equatable, CustomStringConvertible {
  // Downstream.
  case subscription(String)
  case value(AnyHashable)
  case finished
  case failed(Oops?)
  // Upstream.
  case requested(Subscribers.Demand)
  case cancelled

  package var description: String {
    switch self {
    case .subscription(let name): "subscription(\(name))"
    case .value(let value): "value(\(value))"
    case .finished: "finished"
    case .failed(let error): "failed(\(error?.number.description ?? "?"))"
    case .requested(let demand): "requested(\(demand))"
    case .cancelled: "cancelled"
    }
  }
}

/// What happened, in order.
package final class History {
  package var events: [Happening] = []

  package init() {}

  /// What happened since the last call.
  package func take() -> [Happening] {
    defer { events = [] }
    return events
  }
}
