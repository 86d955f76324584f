import SluiceWire
import TestSupport
import Testing

@testable import SluiceSession

@Suite struct ServerStreamTableTests {
  /// When a slot is removed and created again, tokens of its earlier uses stay outdated.
  @Test func tokensOfStreamsThatWereGivenUpStayOutdated() {
    var table = ServerStreamTable()
    table.makeRoom(for: 1)
    table[1] = .subscription(grantedThrough: 0)
    var tokens: Set<StreamToken> = []
    for _ in 0..<3 {
      table.makeRoom(for: 3)
      for stream in 2...3 as ClosedRange<UInt32> {
        table[stream] = .request
        #expect(tokens.insert(table.token(of: stream)).inserted)
      }
      table.end(2, .free)
      table.end(3, .free)
      #expect(!tokens.contains(table.token(of: 2)))
    }
  }

  @Test func onlyStreamsInUseTakeMemory() {
    var table = ServerStreamTable()
    table.makeRoom(for: 4)
    for stream in 1...4 as ClosedRange<UInt32> { table[stream] = .request }
    table.end(2, .free)
    #expect(table.bytes == 4 * ServerStreamTable.bytesPerStream)
    table.end(4, .free)
    #expect(table.bytes == 3 * ServerStreamTable.bytesPerStream)
    // The client may not know yet that the broker has ended the stream. The table knows it without a slot.
    table.end(3, .ended)
    #expect(table.bytes == 2 * ServerStreamTable.bytesPerStream)
    #expect(isEnded(3, in: table))
    #expect(!isEnded(4, in: table))
    table.makeRoom(for: 4)
    #expect(isEnded(3, in: table))
    #expect(!isEnded(4, in: table))
    table.end(4, .ended)
    #expect(table.bytes == 2 * ServerStreamTable.bytesPerStream)
    table.end(3, .free)
    #expect(!isEnded(3, in: table))
    #expect(isEnded(4, in: table))
    table.end(4, .free)
    #expect(table.bytes == ServerStreamTable.bytesPerStream)
    table.end(1, .free)
    #expect(table.bytes == 0)
    #expect(table.highest == 4)
  }

  /// When a stream has ended, another object may serve its number.
  @Test func anEndedStreamMayBeServed() {
    var table = ServerStreamTable()
    table.makeRoom(for: 1)
    table[1] = .subscription(grantedThrough: 0)
    table.end(1, .ended)
    #expect(table.bytes == 0)
    table.attach(Served(), to: 1)
    #expect(table.object(1) != nil)
    #expect(isEnded(1, in: table))
    table.detach(1)
    #expect(table.bytes == 0)
    #expect(isEnded(1, in: table))
  }

  /// The client may still send to a publication that the broker has refused and whose object is freed before the table is updated.
  @Test func aStreamThatIsLeavingMayBeEnded() {
    var table = ServerStreamTable()
    table.makeRoom(for: 1)
    table[1] = .leaving(PublicationCredit(startingAt: 0))
    table.attach(Served(), to: 1)
    table.detach(1)
    table.end(1, .ended)
    #expect(isEnded(1, in: table))
    #expect(table.bytes == 0)
  }

  @Test(arguments: 1...200 as ClosedRange<UInt64>)
  func theTableIsAsOneThatKeepsEachSlot(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var (table, kept) = (ServerStreamTable(), [String](repeating: "free", count: 7))
    var outdated: Set<StreamToken> = []
    var highest: UInt32 = 0
    for _ in 0..<200 {
      let stream = UInt32(random.next() % 6) + 1
      if stream > highest || random.next() % 3 == 0 {
        table.makeRoom(for: stream)
        highest = max(highest, stream)
      }
      let index = Int(stream)
      switch random.next() % 4 {
      case 0: (table[stream], kept[index]) = (.request, "request")
      case 1: (table[stream], kept[index]) = (.ended, "ended")
      case 2:
        outdated.insert(table.token(of: stream))
        table.end(stream, .ended)
        kept[index] = "ended"
      default:
        outdated.insert(table.token(of: stream))
        table.end(stream, .free)
        kept[index] = "free"
      }
      #expect(!outdated.contains(table.token(of: stream)))
      #expect((1...6).map { name(table[$0]) } == Array(kept[1...]), "\(seed)")
    }
  }

  private func name(_ state: ServerStreamTable.State) -> String {
    switch state {
    case .free: "free"
    case .ended: "ended"
    case .request: "request"
    default: "other"
    }
  }

  private final class Served: ServerStream {
    let kind = StreamKind.committing

    func release() {}
    func reconsider() throws(WireError) {}
    func isDrained(isPatient: Bool) -> Bool { true }
  }

  private func isEnded(_ stream: UInt32, in table: ServerStreamTable) -> Bool {
    if case .ended = table[stream] { true } else { false }
  }
}
