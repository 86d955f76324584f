import SluiceIO
import SluiceStore
import SluiceWire
import Synchronization
import Testing

@testable import SluiceTopics

@Suite("What a store's writer keeps, as values")
struct StoreWriterValueTests {
  /// A topic that never has anything to store.
  private final class IdleTopic: DurableTopic {
    let name: String
    var storage: StoreTopicState? { nil }
    var isDeleted: Bool { false }
    var keptFrom: UInt64? { nil }

    init(_ name: String) { self.name = name }

    func takeForCommit(at clocks: ClockReading) -> (
      taken: UncommittedTail.Taken, change: TopicChange, keep: UInt64?
    )? { nil }
    func undo(_ taken: UncommittedTail.Taken) {}
    func committed(_ commit: TopicCommit) {}
    func quarantine(_ taken: UncommittedTail.Taken, _ fault: Fault) -> (
      bytes: Int, completions: [UncommittedTail.Completion]
    ) { (0, []) }
  }

  private static func time(_ milliseconds: UInt64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
  }

  // MARK: Commits under way

  @Test("a call is taken when all that was begun before it is settled, in any order")
  func flushes() {
    let called = Mutex<[Int]>([])
    var underWay = CommitsUnderWay<String>()
    func flush(_ number: Int) { underWay.whenSettled { called.withLock { $0.append(number) } } }
    func take() -> [Int] {
      for body in underWay.takeFlushed() { body() }
      return called.withLock { numbers in
        defer { numbers = [] }
        return numbers
      }
    }
    flush(0)
    #expect(take() == [0])
    #expect(underWay.next() == 1)
    underWay.add("a", since: Self.time(5))
    flush(1)
    // A commit that settles immediately isn't in progress.
    #expect(underWay.next() == 2)
    #expect(underWay.next() == 3)
    underWay.add("c", since: Self.time(6))
    flush(2)
    #expect(take() == [] && underWay.count == 2)
    #expect(underWay.settle(3)?.work == "c")
    #expect(underWay.settle(3) == nil && underWay.settle(2) == nil)
    #expect(take() == [])
    #expect(underWay.settle(1)?.start == Self.time(5))
    #expect(underWay.isEmpty && take() == [1, 2])
    #expect(take() == [])
  }

  @Test("after a fence nothing is waited for")
  func fence() {
    var underWay = CommitsUnderWay<String>()
    _ = underWay.next()
    underWay.add("a", since: Self.time(0))
    underWay.whenSettled {}
    underWay.removeAll()
    #expect(underWay.settle(1) == nil)
    #expect(underWay.takeFlushed().count == 1)
    #expect(underWay.next() == 2)
  }

  // MARK: Due topics

  @Test("a topic is due at the earliest of its times")
  func due() {
    let (a, b) = (IdleTopic("a"), IdleTopic("b"))
    var due = DueTopics()
    #expect(due.first == nil)
    due.add(a, at: Self.time(20))
    due.add(a, at: Self.time(30))
    due.add(b, at: Self.time(25))
    #expect(due.first == Self.time(20))
    due.add(b, at: Self.time(10))
    #expect(due.first == Self.time(10))
    due.remove(b)
    #expect(due.first == Self.time(20))
  }

  @Test("all topics are taken together, and the earliest of more than one commit may change")
  func taken() {
    let topics = (0..<5).map { IdleTopic("\($0)") }
    var due = DueTopics()
    for (index, topic) in topics.enumerated() { due.add(topic, at: Self.time(UInt64(50 - index * 10))) }
    #expect(due.take(3).map(\.name) == ["4", "3", "2"])
    #expect(due.take(2).map(\.name).sorted() == ["0", "1"])
    #expect(due.isEmpty && due.take(2).isEmpty)
  }

  // MARK: Stuck commits

  private static func commit(_ topic: IdleTopic, _ cursor: UInt8, before head: UInt64 = 0) -> TopicCommit {
    var change = TopicChange(TopicID(rawValue: 1))
    change.states = [.init(.cursor, key: [1], value: [cursor])]
    change.truncateBefore = head
    return TopicCommit(
      topic: topic, taken: UncommittedTail.Taken(), change: change, before: StoredExtent(),
      extent: StoredExtent(), lapsed: 0, cause: nil)
  }

  @Test("a topic's failed commits become one, in the place of the first")
  func merged() {
    let (a, b) = (IdleTopic("a"), IdleTopic("b"))
    var stuck = StuckCommits()
    stuck.add([Self.commit(a, 1, before: 7)])
    stuck.add([Self.commit(b, 2), Self.commit(a, 3, before: 5)])
    #expect(stuck.all.map(\.topic.name) == ["a", "b"])
    #expect(stuck.all[0].change.states == [.init(.cursor, key: [1], value: [3])])
    #expect(stuck.all[0].change.truncateBefore == 7)
    #expect(stuck.has(a) && stuck.has(b))
    stuck.remove([stuck.all[0]])
    #expect(!stuck.has(a))
    #expect(stuck.take(of: b).count == 1 && stuck.isEmpty)
  }

  // MARK: Retries

  @Test("retries come after longer and longer delays, until something is stored")
  func retries() {
    var retry = StoreRetry()
    let delays = (0..<7).map { _ in retry.next() }
    #expect(delays == [100, 200, 400, 800, 1_600, 2_000, 2_000].map { Duration.milliseconds($0) })
    retry.reset()
    #expect(retry.next() == .milliseconds(100))
  }

  // MARK: Space

  @Test("space is freed piece by piece until there is none, and again after a deletion")
  func freeing() {
    var space = StoreSpace()
    var pieces = [true, true, false]
    let piece = { pieces.removeFirst() }
    #expect(space.free(piece) && space.free(piece) && !space.free(piece))
    #expect(!space.hasGarbage && !space.free(piece) && pieces.isEmpty)
    space.topicDeleted()
    #expect(space.hasGarbage)
    // Space that can't be freed is left for the next deletion.
    #expect(!space.free { () throws(StoreError) in throw StoreError(.failed, "broken") })
    #expect(!space.hasGarbage)
  }

  @Test("the size is read once after commits, and each time while the store fails")
  func size() {
    var space = StoreSpace()
    var reads = 0
    func read(isFailing: Bool = false) -> StoreSize? {
      space.size(isFailing: isFailing) {
        reads += 1
        return StoreSize(files: UInt64(reads), reusable: 0)
      }
    }
    #expect(read()?.files == 1 && read() == nil && reads == 1)
    space.commitBegins()
    space.commitBegins()
    #expect(read()?.files == 2 && read() == nil)
    #expect(read(isFailing: true)?.files == 3 && read(isFailing: true)?.files == 4)
    #expect(read() == nil && reads == 4)
  }

  // MARK: Reports

  @Test("a failure is told once for each kind, then that producers wait, each minute, then the recovery")
  func reports() {
    let health = StoreHealth()
    var reports = StoreReports(health)
    func waiting(_ seconds: UInt64, publishers: Int = 0, bytes: Int = 0) -> StoreEvent? {
      reports.waiting(publishers: publishers, bytes: bytes, at: Self.time(seconds * 1_000))
    }
    #expect(reports.recovered() == nil && waiting(0, publishers: 3) == nil)
    #expect(
      reports.failed(StoreError(.failed, "broken"), at: Self.time(1_000))
        == .failed(message: "broken", isFull: false))
    #expect(reports.failed(StoreError(.failed, "still"), at: Self.time(1_500)) == nil)
    #expect(waiting(2) == nil)
    #expect(
      waiting(2, publishers: 3)
        == .waiting(publishers: 3, bytes: 0, isFull: false, milliseconds: 1_000))
    #expect(waiting(61, publishers: 3, bytes: 5) == nil)
    // Another kind of failure is reported; the time since when producers wait stays.
    #expect(
      reports.failed(StoreError(.full, "full"), at: Self.time(61_500))
        == .failed(message: "full", isFull: true))
    #expect(
      waiting(62, bytes: 5) == .waiting(publishers: 0, bytes: 5, isFull: true, milliseconds: 61_000))
    #expect(reports.recovered() == .recovered && reports.recovered() == nil)
    #expect(health.failure == nil && waiting(500, publishers: 3) == nil)
  }

  // MARK: The end

  @Test("a writer that closes awaits what is under way, asks for one timer, and ends once")
  func closing() throws {
    var closing = StoreClosing()
    #expect(!closing.isClosing && !closing.isClosed)
    #expect(closing.finish(refusal: nil, isSettled: true) == nil)
    let calls = Atomic(0)
    #expect(closing.begin { calls.add(1, ordering: .relaxed) } && closing.isClosing)
    #expect(!closing.begin {})
    #expect(closing.next(isSettled: false) == .awaitAtMost)
    #expect(closing.next(isSettled: false) == .await && closing.next(isSettled: false) == .await)
    #expect(closing.next(isSettled: true) == .finish)
    let finished = closing.finish(refusal: nil, isSettled: true)
    let (end, body) = try #require(finished)
    body()
    #expect(end == .close && calls.load(ordering: .relaxed) == 1)
    #expect(closing.isClosed && !closing.isClosing)
    #expect(closing.finish(refusal: nil, isSettled: true) == nil && !closing.begin {})
  }

  @Test("a store that takes nothing, or hasn't said what became of a commit, isn't closed in order")
  func leaving() {
    func end(refusal: Fault? = nil, isSettled: Bool) -> StoreClosing.End? {
      var closing = StoreClosing()
      _ = closing.begin {}
      return closing.finish(refusal: refusal, isSettled: isSettled)?.end
    }
    let fault = Fault(code: .storageFull, message: "full")
    for isSettled in [true, false] {
      #expect(end(refusal: fault, isSettled: isSettled) == .leave(message: "full; what waited is lost"))
    }
    #expect(
      end(isSettled: false)
        == .leave(message: "the store doesn't say whether the last commits were stored"))
  }
}
