import SluiceIO
import Synchronization
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// A topic's table of producers, and how long it keeps them.
struct ProducerTableTests {
  private final class Losses: Sendable {
    private let connections = Mutex<[UInt64]>([])

    var told: [UInt64] { connections.withLock { $0 } }

    func holder(_ connection: UInt64) -> ProducerTable.Holder {
      ProducerTable.Holder(connection: connection) { _ in self.connections.withLock { $0.append(connection) }
      }
    }
  }

  private let losses = Losses()

  private func time(_ seconds: UInt64) -> MonotonicTime {
    MonotonicTime(nanoseconds: seconds * 1_000_000_000)
  }

  private func open(
    _ table: inout ProducerTable, _ producer: UInt64, from first: UInt64 = 0, on connection: UInt64 = 1,
    at seconds: UInt64 = 0
  ) throws -> (ticket: ProducerTable.Ticket, next: UInt64) {
    let opening = table.open(producer, from: first, losses.holder(connection), now: time(seconds))
    guard case .opened(let ticket, let next, let former) = opening else {
      throw Refused(opening: "\(opening)")
    }
    former?.notify()
    return (ticket, next)
  }

  private func append(
    _ count: UInt64, _ ticket: ProducerTable.Ticket, _ table: inout ProducerTable, isTaken: Bool = true
  ) {
    let taken = table.advance(ticket, by: count)
    #expect(taken == isTaken)
  }

  private struct Refused: Error { var opening: String }

  @Test func aNewProducerIsBelieved() throws {
    var table = ProducerTable(limits: .init())
    #expect(try open(&table, 7).next == 0)
    #expect(try open(&table, 8, from: 100).next == 100)
    #expect(table.count == 2)
  }

  @Test func oneThatComesBackIsToldWhatIsThere() throws {
    var table = ProducerTable(limits: .init())
    let first = try open(&table, 7)
    append(5, first.ticket, &table)
    append(3, first.ticket, &table)
    table.close(first.ticket, now: time(1))
    #expect(try open(&table, 7, from: 2, at: 2).next == 8)
    // The producer has acknowledgements that the table doesn't know.
    #expect(try open(&table, 7, from: 10, at: 2).next == 10)
    #expect(try open(&table, 7, from: 9, at: 2).next == 10)
  }

  @Test func theLaterConnectionHasIt() throws {
    var table = ProducerTable(limits: .init())
    let first = try open(&table, 7, on: 4)
    let second = try open(&table, 7, on: 5)
    #expect(losses.told == [4])
    append(1, first.ticket, &table, isTaken: false)
    append(1, second.ticket, &table)
    // Later calls with the first ticket have no effect.
    table.close(first.ticket, now: time(0))
    guard case .fenced = table.open(7, from: 0, losses.holder(4), now: time(0)) else {
      Issue.record("an earlier connection takes a producer away")
      return
    }
    #expect(table.isCurrent(second.ticket))
    // On the same connection, the later stream wins.
    #expect(try open(&table, 7, on: 5).next == 1)
    #expect(losses.told == [4, 5])
    #expect(!table.isCurrent(second.ticket))
  }

  /// A connection between nodes may be newer than the client's own connection to this node, to which the client has moved.
  @Test func betweenNodesTheLastOpeningHasIt() throws {
    var table = ProducerTable(limits: .init())
    let relayed = ProducerTable.Holder(connection: nil) { _ in }
    _ = try open(&table, 7, on: 9)
    guard case .opened(let second, _, _?) = table.open(7, from: 0, relayed, now: time(0)) else {
      Issue.record("a publication by way of another node doesn't take a producer over")
      return
    }
    #expect(losses.told.isEmpty)
    let third = try open(&table, 7, on: 4)
    append(1, second, &table, isTaken: false)
    append(1, third.ticket, &table)
  }

  @Test func anEarlierConnectionMayHaveItWhenNobodyElseHas() throws {
    var table = ProducerTable(limits: .init())
    let ticket = try open(&table, 7, on: 5).ticket
    append(2, ticket, &table)
    table.close(ticket, now: time(0))
    #expect(try open(&table, 7, on: 4).next == 2)
    #expect(losses.told.isEmpty)
  }

  @Test func whoIsGoneForTooLongIsForgotten() throws {
    var table = ProducerTable(limits: .init(producers: 10, memory: .seconds(60)))
    let gone = try open(&table, 1).ticket
    let staying = try open(&table, 2).ticket
    append(1, gone, &table)
    append(1, staying, &table)
    table.close(gone, now: time(10))
    #expect(try open(&table, 3, at: 69).next == 0)
    #expect(table.count == 3)
    #expect(try open(&table, 4, at: 70).next == 0)
    #expect(table.count == 3)
    append(1, gone, &table, isTaken: false)
    #expect(try open(&table, 1, at: 71).next == 0)
    #expect(try open(&table, 2, at: 1_000).next == 1)
  }

  @Test func beyondTheLimitThoseGoThatLeftFirst() throws {
    var table = ProducerTable(limits: .init(producers: 3, memory: .seconds(60)))
    let tickets = try (1...3).map { try open(&table, $0).ticket }
    for ticket in tickets { append(9, ticket, &table) }
    guard case .full(limit: 3) = table.open(4, from: 0, losses.holder(1), now: time(0)) else {
      Issue.record("one too many")
      return
    }
    for index in [1, 0, 2] { table.close(tickets[index], now: time(1)) }
    // It returns and leaves again, so that it was the last to leave.
    table.close(try open(&table, 2).ticket, now: time(2))
    #expect(try open(&table, 4).next == 0)
    #expect(try open(&table, 5).next == 0)
    #expect(try open(&table, 2).next == 9)
    #expect(table.count == 3)
  }

  @Test func comingAndGoingTakesNoMemory() throws {
    var table = ProducerTable(limits: .init(producers: 3, memory: .seconds(60)))
    for round in 0..<10_000 as Range<UInt64> {
      table.close(try open(&table, round % 5 + 1, at: round / 100).ticket, now: time(round / 100))
    }
    #expect(table.count == 3)
    #expect(table.memory <= 64)
  }

  @Test func whoWasKnownBeforeIsToldWhatIsThere() throws {
    var table = ProducerTable(limits: .init(producers: 3, memory: .seconds(60)), isKept: true)
    table.restore(7, next: 5, now: time(10))
    table.restore(8, next: 6, now: time(10))
    #expect(table.next(of: 7) == 5)
    #expect(table.next(of: 9) == nil)
    let ticket = try open(&table, 7, at: 11).ticket
    append(2, ticket, &table)
    #expect(table.next(of: 7) == 7)
    // The producer is in the table already.
    table.restore(7, next: 100, now: time(11))
    #expect(table.next(of: 7) == 7)
    // The other producer's time started when it was restored.
    _ = try open(&table, 1, at: 69)
    #expect(table.next(of: 8) == 6)
    _ = try open(&table, 2, at: 70)
    #expect(table.next(of: 8) == nil)
    #expect(table.takeForgotten() == [8])
    #expect(table.takeForgotten().isEmpty)
  }

  @Test func whatIsForgottenIsToldUnlessItIsKnownAgain() throws {
    var table = ProducerTable(limits: .init(producers: 2, memory: .seconds(60)), isKept: true)
    for producer in 1...3 as ClosedRange<UInt64> { table.restore(producer, next: 9, now: time(0)) }
    #expect(table.takeForgotten() == [1])
    let two = try open(&table, 1).ticket
    let three = try open(&table, 2).ticket
    // 3 and 2 were removed, and 2 has returned.
    #expect(table.takeForgotten() == [3])
    table.restore(4, next: 9, now: time(0))
    #expect(table.next(of: 4) == nil)
    #expect(table.takeForgotten() == [4])
    table.close(two, now: time(1))
    table.close(three, now: time(1))
    _ = try open(&table, 5, at: 100)
    #expect(table.takeForgotten().sorted() == [1, 2])
  }

  @Test func nothingIsCollectedThatNobodyTakes() throws {
    var table = ProducerTable(limits: .init(producers: 2, memory: .seconds(60)))
    for producer in 1...9 as ClosedRange<UInt64> { table.restore(producer, next: 9, now: time(0)) }
    #expect(table.takeForgotten().isEmpty)
  }
}
