import ReactiveCore
import SluiceClient
import TestSupport

/// A subscriber of all topics of a cluster that stays at one node, which relays the topics of other nodes.
final class ClusterWatcher: Sendable {
  private struct State {
    var arrivals: [UInt64: ClusterArrivals] = [:]
    /// By topic.
    var nextOffset: [String: UInt64] = [:]
    var failure: String?
    var subscriptions: [AnyCancellable] = []
  }

  private let node: String
  private let state = Shared(State())

  init(of topics: [String], at node: String, _ client: Client) {
    self.node = node
    for topic in topics {
      let subscription = client.topic(topic, from: .earliest).events.sink { [weak self] completion in
        guard case .failure(let error) = completion, error.code != .closed else { return }
        self?.fail("the subscription to \(topic) has ended: \(error)")
      } receiveValue: { [weak self] event in
        self?.receive(event, of: topic)
      }
      state.update { $0.subscriptions.append(subscription) }
    }
  }

  var failure: String? { state.value.failure }

  func arrivals(of producer: UInt64) -> ClusterArrivals {
    state.update { $0.arrivals[producer] ?? ClusterArrivals() }
  }

  /// Starts measuring gaps.
  func restart() {
    state.update { state in
      for producer in state.arrivals.keys { state.arrivals[producer]?.restart() }
    }
  }

  private func receive(_ event: TopicEvent<TopicRecord>, of topic: String) {
    switch event {
    case .record(let record):
      let next = state.update { state in
        defer { state.nextOffset[topic] = record.offset + 1 }
        if let found = CrashRecord(record.payload) {
          state.arrivals[found.producer, default: ClusterArrivals()].arrive(found.sequence)
        }
        return state.nextOffset[topic] ?? 0
      }
      if record.offset != next { fail("\(topic)@\(record.offset) came where \(next) was next") }
    case .live, .producers: break
    case .rewound, .lagged, .restarted, .topic: fail("\(topic): \(event)")
    }
  }

  private func fail(_ what: String) {
    state.update { $0.failure = $0.failure ?? "the subscriber at \(node): \(what)" }
  }
}
