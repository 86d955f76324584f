import SluiceLog
import SluiceStore
import SluiceWire

/// Finds how far limits of age have raised the floors of restored topics, before clients use these topics. A store that doesn't block may not have the
/// headers in memory that contain the times.
// @unchecked: belongs to the store's loop.
final class FloorSearch: @unchecked Sendable {
  private static let atATime = 16

  private let store: any ShardStore
  private let wallClock: Int64
  private var waiting: ArraySlice<StoreTopicState>
  private var underWay = 0
  private var failure: StoreError?
  private var done: (@Sendable (StoreError?) -> Void)?

  /// - Parameters:
  ///   - topics: the topics whose floors aren't known.
  ///   - wallClock: the present time in milliseconds since 1970.
  ///   - done: called once, on the store's loop, with the error if the store can't be read.
  init(
    _ topics: [StoreTopicState], in store: any ShardStore, wallClock: Int64,
    _ done: @escaping @Sendable (StoreError?) -> Void
  ) {
    self.store = store
    self.wallClock = wallClock
    self.done = done
    waiting = topics[...]
  }

  func run() {
    while failure == nil, underWay < Self.atATime, let topic = waiting.popFirst() { search(topic) }
    if underWay == 0, failure != nil || waiting.isEmpty { done.take()?(failure) }
  }

  private func search(_ topic: StoreTopicState) {
    guard let cutoff = topic.retention.cutoff(at: wallClock) else { return }
    underWay += 1
    // Records appended before the clock was set back to a time before the cutoff are older than the cutoff, whatever their timestamps.
    let lowest = max(topic.clock.outdated(before: cutoff), topic.floor(before: topic.committed))
    topic.find(cutoff, from: lowest, in: store) { [self] offset, error in
      underWay -= 1
      switch error?.kind {
      case nil: topic.raiseFloor(to: offset, by: .age)
      // The writer drops records that it can read later; the other topics don't wait for that.
      case .damaged: break
      default: failure = error
      }
      run()
    }
  }
}

extension StoreTopicState {
  /// Finds the first stored record with that time or a later one.
  ///
  /// - Parameters:
  ///   - lowest: the lowest offset to consider.
  ///   - body: gets the record's offset, or the offset after all stored records if there is none; and the error if the store couldn't be read.
  func find(
    _ time: Int64, from lowest: UInt64, in store: any ShardStore,
    _ body: @escaping @Sendable (UInt64, StoreError?) -> Void
  ) {
    let span = clock.span(of: time, from: lowest)
    let (low, high) = (max(span.lowerBound, lowest), max(span.upperBound, lowest))
    store.find(time, in: id, within: low..<high) { [self] result in
      let end = max(min(span.upperBound, committed), lowest)
      switch result {
      case .success(let found): body(found.map { max($0, lowest) } ?? end, nil)
      case .failure(let error): body(end, error)
      }
    }
  }
}
