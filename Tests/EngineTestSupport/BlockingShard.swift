import SluiceCluster
import SluiceIO
import SluiceNATS
import SluiceStore
import Synchronization
import TestSupport

/// A blocking wrapper of a shard's non-blocking store: each call waits for its result.
public final class BlockingShard: Sendable {
  public let opened: OpenedShard
  private let loop: any EventLoop
  private let outcomes = Mutex<[UInt64: StoreError?]>([:])
  private let reported = Mutex<[ShardStoreEvent]>([])
  private let lastNumber = Mutex<UInt64>(0)

  private init(_ opened: OpenedShard, on loop: any EventLoop) {
    self.opened = opened
    self.loop = loop
    onLoop { shard in
      shard.opened.store.begin { [weak shard] event in
        guard let shard else { return }
        if case .settled(let number, let error) = event {
          shard.outcomes.withLock { $0[number] = .some(error) }
        } else {
          shard.reported.withLock { $0.append(event) }
        }
      }
    }
  }

  /// Opens a shard.
  public static func open(
    _ engine: any ShardEngine, shard: UInt32, term: UInt64, on loop: any EventLoop
  ) throws -> BlockingShard {
    let result = SharedBox<Result<OpenedShard, StoreError>>()
    engine.open(ShardLease(shard: ShardID(rawValue: shard), term: term)) { result.value = $0 }
    try eventually("shard \(shard) is open", every: 0.0005) { result.value != nil }
    return BlockingShard(try result.value!.get(), on: loop)
  }

  /// Runs `body` on the store's loop, and waits for its result.
  @discardableResult
  public func onLoop<Value: Sendable>(_ body: @escaping @Sendable (BlockingShard) -> Value) -> Value {
    let result = SharedBox<Value>()
    loop.execute { result.value = body(self) }
    _ = try? eventually("the loop has a turn", every: 0.0002) { result.value != nil }
    return result.value!
  }

  /// The reported events, outcomes excluded.
  public var events: [ShardStoreEvent] { reported.withLock { $0 } }

  public var isFenced: Bool {
    events.contains { if case .fenced = $0 { true } else { false } }
  }

  /// Starts a commit. Returns its number.
  public func begin(_ changes: [TopicChange]) -> UInt64 { begin(each: [changes])[0] }

  /// Starts commits in one turn of the loop. Returns their numbers.
  public func begin(each commits: [[TopicChange]]) -> [UInt64] {
    let numbers = takeNumbers(commits.count)
    loop.execute { [self] in begin(commits, as: numbers) }
    return numbers
  }

  /// Starts commits immediately, on the store's loop. Returns their numbers.
  public func beginNow(each commits: [[TopicChange]]) -> [UInt64] {
    let numbers = takeNumbers(commits.count)
    begin(commits, as: numbers)
    return numbers
  }

  private func takeNumbers(_ count: Int) -> [UInt64] {
    lastNumber.withLock { last in
      defer { last += UInt64(count) }
      return (0..<count).map { last + 1 + UInt64($0) }
    }
  }

  private func begin(_ commits: [[TopicChange]], as numbers: [UInt64]) {
    for (number, changes) in zip(numbers, commits) {
      if case .settled(let error) = opened.store.commit(changes, as: number) {
        outcomes.withLock { $0[number] = .some(error) }
      }
    }
  }

  /// The outcome of a commit; nil while it is unknown. The inner value is nil for a stored commit.
  public func outcome(of number: UInt64) -> StoreError?? { outcomes.withLock { $0[number] } }

  public func commit(_ changes: [TopicChange]) throws(StoreError) {
    let number = begin(changes)
    _ = try? eventually("commit \(number) is settled", every: 0.0002) {
      self.outcome(of: number) != nil || self.isFenced
    }
    guard let outcome = outcome(of: number) else {
      throw StoreError(isFenced ? .fenced : .outcomeUnknown, "commit \(number) isn't settled")
    }
    if let outcome { throw outcome }
  }

  public func batches(
    of topic: TopicID, from offset: UInt64, _ body: (UInt64, UnsafeRawBufferPointer) -> Bool
  ) throws(StoreError) {
    let found = SharedBox<[(UInt64, [UInt8])]>([])
    let result = SharedBox<StoreError?>()
    opened.store.read(
      topic, from: offset, bytes: 1 << 20,
      each: {
        found.value!.append(($0, Array($1)))
        return true
      }
    ) { result.value = .some($0) }
    _ = try? eventually("batches are read", every: 0.0002) { result.value != nil }
    if case .some(.some(let error)) = result.value { throw error }
    for (offset, bytes) in found.value! {
      guard bytes.withUnsafeBytes({ body(offset, $0) }) else { return }
    }
  }

  public func find(_ time: Int64, in topic: TopicID) throws(StoreError) -> UInt64? {
    let result = SharedBox<Result<UInt64?, StoreError>>()
    opened.store.find(time, in: topic, within: 0..<UInt64.max) { result.value = $0 }
    _ = try? eventually("a time is found", every: 0.0002) { result.value != nil }
    guard let found = result.value else { throw StoreError(.unavailable, "a search doesn't end") }
    return try found.get()
  }

  public func close() throws(StoreError) {
    let result = SharedBox<StoreError?>()
    loop.execute { [self] in opened.store.close { result.value = .some($0) } }
    _ = try? eventually("the shard is closed", every: 0.0005) { result.value != nil }
    if case .some(.some(let error)) = result.value { throw error }
  }
}

/// A value that one thread sets and others wait for.
public final class SharedBox<Value: Sendable>: Sendable {
  private let box: Mutex<Value?>

  public init(_ value: Value? = nil) {
    box = Mutex(value)
  }

  public var value: Value? {
    get { box.withLock { $0 } }
    set { box.withLock { $0 = newValue } }
  }
}
