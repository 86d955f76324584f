import SluiceStore
import SluiceWire
import Synchronization
import Testing

@testable import SluiceTopics

@Suite("What waits to be committed, in portions of a commit")
struct UncommittedTailTests {
  /// Appends a record of `bytes` bytes, its length word included.
  private static func append(_ bytes: Int, to tail: inout UncommittedTail) {
    let size = UInt32(bytes - 4)
    let item = withUnsafeBytes(of: size.littleEndian) { Array($0) } + Array(repeating: 1, count: bytes - 4)
    _ = item.withUnsafeBytes { tail.append($0, count: 1, at: 1) }
  }

  private static func take(_ count: Int, of tail: inout UncommittedTail) -> [UncommittedTail.Taken] {
    (0..<count).map { _ in tail.take() }
  }

  private static func offsets(_ taken: UncommittedTail.Taken) -> Range<UInt64>? {
    guard let first = taken.blocks.first, let last = taken.blocks.last else { return nil }
    return first.firstOffset..<last.endOffset
  }

  /// Seven records of 100 bytes, three to a commit, after a topic's row.
  private static func waiting() -> UncommittedTail {
    var tail = UncommittedTail(StoredExtent(), commitBytes: 350)
    tail.noteRow()
    for number in 1...7 {
      append(100, to: &tail)
      tail.note(producer: 9, next: UInt64(number))
    }
    return tail
  }

  @Test("each portion has its records, and what was noted of their producers")
  func portions() {
    var tail = Self.waiting()
    let bytes = tail.waitingBytes
    let all = Self.take(4, of: &tail)
    #expect(all.map(Self.offsets) == [0..<3, 3..<6, 6..<7, nil])
    #expect(all.map { $0.producers[9] } == [3, 6, 7, nil])
    #expect(all.map(\.isRowDue) == [true, false, false, false])
    #expect(all.map(\.hasMore) == [true, true, false, false])
    #expect(all.reduce(0) { $0 + $1.bytes } == bytes)
    for taken in all { tail.committed(taken) }
    #expect(tail.waitingBytes == 0 && tail.committed == 7)
  }

  @Test("while more waits, a commit is due")
  func due() {
    var tail = Self.waiting()
    _ = tail.take()
    let isDue = !tail.ask(within: .zero)
    #expect(isDue)
    _ = Self.take(2, of: &tail)
    let wasTaken = tail.ask(within: .zero)
    #expect(wasTaken)
  }

  @Test("a commit is asked for when a full one has gathered, though one is due")
  func gathered() {
    var tail = UncommittedTail(StoredExtent(), commitBytes: 350)
    var asked: [Bool] = []
    for _ in 0..<7 {
      Self.append(100, to: &tail)
      asked.append(tail.ask(within: .zero))
    }
    #expect(asked == [true, false, false, true, false, false, true])
  }

  @Test("a batch that is longer than a commit is one by itself")
  func longBatch() {
    var tail = UncommittedTail(StoredExtent(), commitBytes: 350)
    for bytes in [100, 1_000, 100] { Self.append(bytes, to: &tail) }
    #expect(Self.take(3, of: &tail).map(Self.offsets) == [0..<1, 1..<2, 2..<3])
  }

  @Test("what a deleted topic has goes at once")
  func takesAll() {
    var tail = Self.waiting()
    let bytes = tail.waitingBytes
    let taken = tail.take(all: true)
    #expect(Self.offsets(taken) == 0..<7 && taken.bytes == bytes && !taken.hasMore)
    #expect(Self.take(1, of: &tail).map(Self.offsets) == [nil])
  }

  @Test("a portion that is returned is taken first")
  func undo() {
    var tail = Self.waiting()
    let first = tail.take()
    tail.undo(first)
    #expect(Self.take(1, of: &tail).map(Self.offsets) == [0..<3])
    let rest = Self.take(2, of: &tail)
    #expect(rest.map(Self.offsets) == [3..<6, 6..<7])
    // Records appended since join the last one.
    tail.undo(rest[1])
    Self.append(100, to: &tail)
    #expect(Self.take(1, of: &tail).map(Self.offsets) == [6..<8])
  }

  @Test("what waits for a commit is called with that of the last record, or when all is dropped")
  func completions() {
    let called = Mutex(0)
    func wait(_ tail: inout UncommittedTail) {
      let waits = tail.whenCommitted(.init(name: nil) { _ in called.withLock { $0 += 1 } })
      #expect(waits)
    }
    var tail = UncommittedTail(StoredExtent(), commitBytes: 350)
    for _ in 0..<4 { Self.append(100, to: &tail) }
    wait(&tail)
    let first = tail.take()
    #expect(first.completions.isEmpty)
    wait(&tail)
    for _ in 0..<4 { Self.append(100, to: &tail) }
    wait(&tail)
    let dropped = tail.discard(first)
    #expect(dropped.completions.count == 3 && dropped.bytes > 0)
    #expect(tail.waitingBytes == 0)
    #expect(Self.take(1, of: &tail).map(Self.offsets) == [nil])
  }
}

@Suite("The pace of commits")
struct CommitPaceTests {
  @Test("a little waits behind much and behind two commits, and for nothing else")
  func pace() {
    let pace = CommitPace(commitBytes: 1_000)
    #expect(pace.mayBegin(besides: 0, of: 0, with: 0))
    #expect(pace.mayBegin(besides: 1, of: 499, with: 1))
    #expect(!pace.mayBegin(besides: 2, of: 2, with: 499))
    #expect(pace.mayBegin(besides: 2, of: 2, with: 500))
    #expect(!pace.mayBegin(besides: 1, of: 500, with: 499))
    #expect(pace.mayBegin(besides: 1, of: 500, with: 500))
    #expect(pace.mayBegin(besides: 15, of: 9_000, with: 1_000))
  }

  @Test("where each commit costs a sync of its own, nothing waits for its size")
  func blocking() {
    #expect(CommitPace(commitBytes: .max).mayBegin(besides: 0, of: 0, with: 1))
  }
}
