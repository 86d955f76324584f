import ReactiveCore
import SluiceClient
import TestSupport

/// Reads a topic with a durable cursor that it commits at times, and keeps a copy of the records, as the topic has them.
///
/// After some of its commits it publishes a marker record to the same topic. Once that is acknowledged as durable, the commit is on disk, too.
final class CrashReader: Sendable {
  private struct State {
    var records: [CrashRecord] = []
    /// By producer.
    var arrivals: [UInt64: ClusterArrivals] = [:]
    /// The number of the present subscription; earlier ones have ended.
    var life = 0
    /// Whether the subscription has just started, with no record yet.
    var isBeginning = true
    /// The highest commit sent.
    var committed: UInt64 = 0
    /// The highest commit known to be on disk.
    var durable: UInt64 = 0
    /// The number of connections so far; and the commit that waits for the marker with the sequence, on the connection on which both were sent.
    var connections = 0
    var waiting: (sequence: UInt64, offset: UInt64, connection: Int)?
    var random: SeededRandom
    var failure: String?
    var watches: [AnyCancellable] = []
  }

  let topic: String
  static let cursor = "reader"
  private let isSynchronous: Bool
  private let state: Shared<State>
  let marker: CrashProducer

  init(_ topic: String, isSynchronous: Bool, marker id: UInt64, random: SeededRandom) {
    self.topic = topic
    self.isSynchronous = isSynchronous
    let state = Shared(State(random: random))
    self.state = state
    marker = CrashProducer(topic, id: id, acknowledgement: .durable) { sequence in
      state.update { state in
        guard let waiting = state.waiting, sequence > waiting.sequence else { return }
        state.waiting = nil
        if waiting.connection == state.connections { state.durable = max(state.durable, waiting.offset) }
      }
    }
  }

  /// Stops, as if its program had ended.
  func stop() {
    marker.stop()
    let former = state.update { state in
      defer { state.watches = [] }
      state.life += 1
      state.isBeginning = true
      state.waiting = nil
      return state.watches
    }
    for watch in former { watch.cancel() }
  }

  /// Subscribes and publishes its markers with that client.
  func start(on client: Client) {
    let connections = client.connectionState.sink { [state] in
      if case .connected = $0 { state.update { $0.connections += 1 } }
    }
    let life = state.value.life
    marker.start(on: client, from: marker.acknowledged)
    let records = client.topic(topic, from: .earliest, cursor: .init(Self.cursor, commit: .manual)).events
      .sink {
        [state, topic] completion in
        guard case .failure(let error) = completion, error.code != .closed else { return }
        state.update { $0.failure = "the reader of \(topic) has ended: \(error)" }
      } receiveValue: { [self] in
        receive($0, in: life)
      }
    state.update { $0.watches = [connections, records] }
  }

  var records: [CrashRecord] { state.value.records }
  var count: Int { state.update { $0.records.count } }
  func arrivals(of producer: UInt64) -> ClusterArrivals {
    state.update { $0.arrivals[producer] ?? ClusterArrivals() }
  }

  /// Starts measuring gaps between records.
  func restart() {
    state.update { state in
      for producer in state.arrivals.keys { state.arrivals[producer]?.restart() }
    }
  }

  var committed: UInt64 { state.value.committed }
  var durable: UInt64 { state.value.durable }
  var failure: String? { state.value.failure ?? marker.failure }

  /// Called on the client's loop.
  private func receive(_ event: TopicEvent<TopicRecord>, in life: Int) {
    guard life == state.value.life else { return }
    switch event {
    case .record(let record): take(record)
    case .live, .producers: break
    case .rewound(let offset):
      state.update { state in
        if isSynchronous {
          state.failure = "records of \(topic) from \(offset) on are lost, whose sync is always"
        }
        if offset < state.durable {
          state.failure = "\(topic) went back to \(offset), behind what is on disk"
        }
        state.records.removeLast(max(state.records.count - Int(offset), 0))
        state.committed = min(state.committed, offset)
      }
    case .lagged(let missed, _): fail("\(missed) records are missing")
    case .restarted: fail("it was started anew")
    case .topic: fail("news of a topic")
    }
  }

  private func take(_ record: TopicRecord) {
    let mark: Bool = state.update { state in
      guard let found = CrashRecord(record.payload) else {
        state.failure = "\(topic)@\(record.offset) is a record that no producer has published"
        return false
      }
      let offset = Int(record.offset)
      if state.isBeginning {
        state.isBeginning = false
        if record.offset > state.committed || record.offset < state.durable {
          state.failure =
            "a subscription of \(topic) began at \(offset), with commits up to \(state.committed), of which \(state.durable) is durable"
        }
        state.records.removeLast(max(state.records.count - offset, 0))
      }
      guard offset == state.records.count else {
        state.failure = "\(topic)@\(offset) came where \(state.records.count) was next"
        return false
      }
      state.records.append(found)
      state.arrivals[found.producer, default: ClusterArrivals()].arrive(found.sequence)
      guard state.random.next() % 7 == 0 else { return false }
      record.commit()
      state.committed = max(state.committed, record.offset + 1)
      guard state.waiting == nil, state.random.next() % 3 == 0 else { return false }
      state.waiting = (marker.sent, record.offset + 1, state.connections)
      return true
    }
    if mark { marker.allow(1) }
  }

  private func fail(_ what: String) {
    state.update { $0.failure = "the reader of \(topic): \(what)" }
  }
}
