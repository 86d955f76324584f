import ReactiveCore
import SluiceClient
import TestSupport

/// The only member of a group: it finally acknowledges every record, after retries of some.
final class CrashGroup: Sendable {
  private struct State {
    var delivered: Set<CrashRecord> = []
    var random: SeededRandom
    var failure: String?
    var watch: AnyCancellable?
  }

  static let name = "workers"
  let topic: String
  private let state: Shared<State>

  init(_ topic: String, random: SeededRandom) {
    self.topic = topic
    state = Shared(State(random: random))
  }

  var failure: String? { state.value.failure }

  /// Joins with that client.
  func start(on client: Client) {
    let watch = client.group(
      Self.name, of: topic, options: GroupOptions(acknowledgement: .explicit), from: .earliest
    ).sink { [state, topic] completion in
      guard case .failure(let error) = completion, error.code != .closed else { return }
      state.update { $0.failure = "the group of \(topic) has ended: \(error)" }
    } receiveValue: { [state] delivery in
      guard let record = CrashRecord(delivery.record.payload) else {
        return state.update { $0.failure = "\(delivery.record) reached the group unpublished" }
      }
      let isRefused = state.update { state in
        state.delivered.insert(record)
        return delivery.count < 3 && state.random.next() % 10 == 0
      }
      if isRefused { delivery.retry() } else { delivery.acknowledge() }
    }
    state.update { $0.watch = watch }
  }

  /// Stops, as if its program had ended.
  func stop() {
    state.update { $0.watch.take() }?.cancel()
  }

  /// Records that the group never got.
  func missed(of records: [CrashRecord]) -> [CrashRecord] {
    let delivered = state.value.delivered
    return records.filter { !delivered.contains($0) }
  }
}
