import ReactiveCore
import Synchronization

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

/// The happenings, in order. A test's thread may read it while another thread appends to it.
package final class History: Sendable {
  // The payload of a happening needn't be Sendable: a test compares it, and changes nothing in it.
  private struct Recorded: @unchecked Sendable {
    var events: [Happening] = []
  }

  private let recorded = Mutex(Recorded())

  package var events: [Happening] {
    get { recorded.withLock { UncheckedBox($0.events) }.value }
    set {
      let box = UncheckedBox(newValue)
      recorded.withLock { $0.events = box.value }
    }
  }

  package init() {}

  package func append(_ happening: Happening) {
    let box = UncheckedBox(happening)
    recorded.withLock { $0.events.append(box.value) }
  }

  /// The happenings since the last look.
  package func take() -> [Happening] {
    recorded.withLock { recorded in
      defer { recorded.events = [] }
      return UncheckedBox(recorded.events)
    }.value
  }
}
