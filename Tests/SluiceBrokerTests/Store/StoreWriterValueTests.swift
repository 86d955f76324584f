import SluiceIO
import SluiceStore
import SluiceWire
import Synchronization
import Testing

@testable import SluiceTopics

@Suite("What a store's writer keeps, as values")
struct StoreWriterValueTests {
  /// A topic that never has anything to be stored.
  private final class IdleTopic: DurableTopic {
    let name: String
    var storage: StoreTopicState? { nil }
    var isDeleted: Bool { false }
    var keptFrom: UInt64? { nil }

    init(_ name: String) { self.name = name }

    func takeForCommit(now: MonotonicTime) -> (
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
    // One that settles at once isn't under way.
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
}
