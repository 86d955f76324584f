import SluiceIO
import Synchronization
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// A topic's table of durable cursors and of the subscriptions that use them.
struct CursorTableTests {
  private final class Losses: Sendable {
    private let all = Mutex<[String]>([])

    var told: [String] { all.withLock { $0 } }

    func holder(_ name: String) -> CursorTable.Holder {
      CursorTable.Holder { _, loss in self.all.withLock { $0.append("\(name) \(loss)") } }
    }
  }

  private let losses = Losses()

  private func time(_ seconds: UInt64) -> MonotonicTime {
    MonotonicTime(nanoseconds: seconds * 1_000_000_000)
  }

  private func place(_ offset: UInt64, epoch: UInt64 = 1) -> CursorTable.Place {
    CursorTable.Place(epoch: epoch, nextOffset: offset)
  }

  private func use(
    _ table: inout CursorTable, _ name: String, by holder: String = "a", at offset: UInt64 = 0,
    seconds: UInt64 = 0
  ) throws -> CursorTable.Ticket {
    guard let use = table.use(name, at: place(offset), losses.holder(holder), now: time(seconds)) else {
      throw Full()
    }
    use.former?.notify()
    return use.ticket
  }

  private struct Full: Error {}

  private func isFull(_ table: inout CursorTable, _ name: String, seconds: UInt64) -> Bool {
    table.use(name, at: place(0), losses.holder(name), now: time(seconds)) == nil
  }

  /// Returns false if there was no room.
  @discardableResult
  private func move(_ table: inout CursorTable, _ name: String, to place: CursorTable.Place) -> Bool {
    guard let change = table.move(name, to: place, now: time(1)) else { return false }
    change.former?.notify()
    return true
  }

  /// Returns false if there was no such cursor.
  @discardableResult
  private func delete(_ table: inout CursorTable, _ name: String, seconds: UInt64 = 1) -> Bool {
    guard let change = table.delete(name, now: time(seconds)) else { return false }
    change.former?.notify()
    return true
  }

  private func offset(_ table: CursorTable, _ name: String, seconds: UInt64 = 0) -> UInt64? {
    table.find(name, now: time(seconds))?.place.nextOffset
  }

  @Test func aPlaceOutlivesWhoMadeIt() throws {
    var table = CursorTable(limits: .init())
    #expect(offset(table, "billing") == nil)
    let ticket = try use(&table, "billing", at: 5)
    #expect(offset(table, "billing") == 5)
    table.commit(ticket, through: 9)
    table.leave(ticket, now: time(1))
    #expect(offset(table, "billing", seconds: 2) == 9)
    #expect(losses.told.isEmpty)
  }

  @Test func aCommitOnlyMovesForward() throws {
    var table = CursorTable(limits: .init())
    let ticket = try use(&table, "billing", at: 5)
    table.commit(ticket, through: 4)
    #expect(offset(table, "billing") == 5)
    table.commit(ticket, through: 8)
    table.commit(ticket, through: 6)
    #expect(offset(table, "billing") == 8)
  }

  @Test func theLaterSubscriptionHasIt() throws {
    var table = CursorTable(limits: .init())
    let first = try use(&table, "billing", by: "first")
    let second = try use(&table, "billing", by: "second", at: 3)
    #expect(losses.told == ["first taken"])
    // Later calls with the first ticket have no effect.
    table.commit(first, through: 100)
    table.leave(first, now: time(1))
    #expect(offset(table, "billing") == 3)
    table.commit(second, through: 4)
    #expect(offset(table, "billing") == 4)
    #expect(table.summaries(now: time(9)).map(\.isUsed) == [true])
  }

  @Test func movingTellsWhoUsesIt() throws {
    var table = CursorTable(limits: .init())
    let ticket = try use(&table, "billing", at: 50)
    move(&table, "billing", to: place(10, epoch: 2))
    #expect(losses.told == ["a moved"])
    table.commit(ticket, through: 60)
    #expect(table.find("billing", now: time(2)) == .init(place: place(10, epoch: 2), isMoved: true))
    // The cursor is unused, so no subscription is notified.
    move(&table, "billing", to: place(20))
    #expect(losses.told == ["a moved"])
    // A subscription that starts at the new position clears the mark.
    _ = try use(&table, "billing", at: 20)
    #expect(table.find("billing", now: time(4)) == .init(place: place(20), isMoved: false))
    // Moving a missing cursor creates it.
    move(&table, "audit", to: place(7))
    #expect(offset(table, "audit") == 7)
  }

  @Test func deletingTellsWhoUsesIt() throws {
    var table = CursorTable(limits: .init())
    let ticket = try use(&table, "billing", at: 50)
    delete(&table, "billing")
    #expect(losses.told == ["a deleted"])
    #expect(offset(table, "billing") == nil)
    var isThere = delete(&table, "billing")
    #expect(!isThere)
    isThere = delete(&table, "never")
    #expect(!isThere)
    // Another cursor takes its slot; the old ticket doesn't match it.
    _ = try use(&table, "audit", by: "b")
    table.commit(ticket, through: 60)
    table.leave(ticket, now: time(2))
    #expect(offset(table, "audit") == 0)
    #expect(table.summaries(now: time(3)).map(\.isUsed) == [true])
  }

  @Test func whatNobodyUsesForTooLongIsForgotten() throws {
    var table = CursorTable(limits: .init(cursors: 10, memory: .seconds(60)))
    let gone = try use(&table, "gone", at: 1)
    _ = try use(&table, "used", at: 2)
    table.leave(gone, now: time(10))
    #expect(offset(table, "gone", seconds: 69) == 1)
    #expect(table.summaries(now: time(69)).map(\.name).sorted() == ["gone", "used"])
    #expect(table.summaries(now: time(69)).first { $0.name == "gone" }?.idle == .seconds(59))
    #expect(offset(table, "gone", seconds: 70) == nil)
    #expect(table.summaries(now: time(70)).map(\.name) == ["used"])
    let wasThere = delete(&table, "gone", seconds: 70)
    #expect(!wasThere)
    #expect(offset(table, "used", seconds: 1_000) == 2)
    // Using the old name creates a new cursor.
    _ = try use(&table, "gone", at: 8, seconds: 80)
    #expect(offset(table, "gone", seconds: 80) == 8)
  }

  @Test func beyondTheLimitNoneIsMade() throws {
    var table = CursorTable(limits: .init(cursors: 2, memory: .seconds(60)))
    let ticket = try use(&table, "a")
    _ = try use(&table, "b")
    var isRefused = isFull(&table, "c", seconds: 0)
    #expect(isRefused)
    isRefused = !move(&table, "c", to: place(0))
    #expect(isRefused)
    // An existing cursor may be used.
    _ = try use(&table, "b")
    table.leave(ticket, now: time(1))
    isRefused = isFull(&table, "c", seconds: 60)
    #expect(isRefused)
    _ = try use(&table, "c", seconds: 61)
    #expect(table.count == 2)
  }

  @Test func whatWasKnownBeforeIsFound() throws {
    var table = CursorTable(limits: .init(cursors: 2, memory: .seconds(60)), isKept: true)
    let moved = CursorTable.Finding(place: place(10, epoch: 2), isMoved: true)
    table.restore("billing", moved, now: time(10))
    #expect(table.find("billing", now: time(69)) == moved)
    #expect(table.find("billing", now: time(70)) == nil)
    #expect(table.place(of: "billing") == moved)
    #expect(table.place(of: "audit") == nil)
    #expect(table.isStored("billing"))
    // The cursor exists already.
    table.restore("billing", .init(place: place(1), isMoved: false), now: time(11))
    #expect(table.place(of: "billing") == moved)
    // More cursors than the limit.
    for name in ["a", "b"] { table.restore(name, moved, now: time(11)) }
    #expect(table.count == 3)
    let isRefused = isFull(&table, "c", seconds: 12)
    #expect(isRefused)
    let ticket = try use(&table, "billing", at: 10, seconds: 12)
    table.commit(ticket, through: 12)
    #expect(table.place(of: "billing") == .init(place: place(12), isMoved: false))
  }

  @Test func whatIsForgottenIsToldUnlessItIsKnownAgain() throws {
    var table = CursorTable(limits: .init(cursors: 3, memory: .seconds(60)), isKept: true)
    for name in ["a", "b", "c"] { table.restore(name, .init(place: place(1), isMoved: false), now: time(0)) }
    delete(&table, "a")
    #expect(table.takeForgotten() == ["a"])
    #expect(table.takeForgotten().isEmpty)
    delete(&table, "b")
    _ = try use(&table, "b")
    #expect(table.takeForgotten().isEmpty)
    // Removing "c" makes room for these.
    _ = try use(&table, "d", seconds: 60)
    _ = try use(&table, "e", seconds: 60)
    #expect(table.takeForgotten() == ["c"])
    var memory = CursorTable(limits: .init())
    _ = try use(&memory, "a")
    delete(&memory, "a")
    #expect(memory.takeForgotten().isEmpty)
  }

  @Test func aCursorIsStoredWhenSomebodySaysSo() throws {
    var table = CursorTable(limits: .init(), isKept: true)
    _ = try use(&table, "billing")
    #expect(!table.isStored("billing"))
    table.stored("billing")
    #expect(table.isStored("billing"))
    // A new cursor of that name isn't stored yet.
    delete(&table, "billing")
    table.stored("billing")
    #expect(!table.isStored("billing"))
    _ = try use(&table, "billing")
    #expect(!table.isStored("billing"))
  }
}
