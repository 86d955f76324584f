import ReactiveCore

/// The error that tests fail with.
struct Oops: Error, Equatable {
  var number = 0
}

/// Something that happened at one of the two ends of a pipeline under test.
enum Happening: Equatable, CustomStringConvertible {
  // Downstream.
  case subscription(String)
  case value(AnyHashable)
  case finished
  case failed(Oops?)
  // Upstream.
  case requested(Subscribers.Demand)
  case cancelled

  var description: String {
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
final class History {
  var events: [Happening] = []

  /// What happened since the last call.
  func take() -> [Happening] {
    defer { events = [] }
    return events
  }
}
