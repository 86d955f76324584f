import SluiceIO
import Testing

@testable import SluiceCluster

@Suite("Reports of shards that were taken over")
struct TakeOverLogTests {
  private static func time(_ seconds: Int) -> MonotonicTime {
    MonotonicTime(nanoseconds: UInt64(seconds) * 1_000_000_000)
  }

  private static func former(_ state: ShardRecord.State, heard: Int) -> ShardEntry {
    ShardEntry(
      sequence: 1,
      record: ShardRecord(writer: 1, count: 1, state: state, owner: "b", session: 1, term: 2),
      heard: time(heard))
  }

  @Test(
    "the time of a takeover counts from the last sign of an owner that died, and from the hand-over of one that gave it up"
  )
  func causes() {
    var directory = Directory()
    let node = NodeRecord(writer: 1, count: 1, session: 1, state: .live, address: "a:1", version: "1")
    _ = directory.apply(.node("b", node), 1, at: Self.time(4))
    var log = TakeOverLog()
    log.gained(0, nil, givenBy: nil, directory, at: Self.time(10))
    log.gained(1, Self.former(.free, heard: 7), givenBy: nil, directory, at: Self.time(10))
    log.gained(2, Self.former(.held, heard: 3), givenBy: nil, directory, at: Self.time(10))
    log.gained(3, nil, givenBy: nil, directory, at: Self.time(10))
    log.lost(3)
    let reports = (0..<4).map { log.opened($0, term: 5, at: Self.time(12)) }
    #expect(
      reports == [
        TakeOver(shard: 0, term: 5, cause: .first, duration: .seconds(2)),
        TakeOver(shard: 1, term: 5, cause: .handedOver(from: "b"), duration: .seconds(5)),
        TakeOver(shard: 2, term: 5, cause: .died("b"), duration: .seconds(8)), nil,
      ])
    #expect(log.opened(0, term: 5, at: Self.time(13)) == nil)
  }

  @Test("a node that was stopped in order isn't called dead, and one whose session another node ended is")
  func stopped() {
    for (endedBy, cause) in [(nil, TakeOver.Cause.handedOver(from: "b")), ("a", .died("b"))] {
      var directory = Directory()
      let node = NodeRecord(
        writer: 1, count: 1, session: 1, state: .ended, address: "a:1", version: "1", endedBy: endedBy)
      _ = directory.apply(.node("b", node), 1, at: Self.time(4))
      var log = TakeOverLog()
      log.gained(0, Self.former(.held, heard: 3), givenBy: nil, directory, at: Self.time(10))
      #expect(log.opened(0, term: 5, at: Self.time(12))?.cause == cause)
    }
  }

  @Test("the time of a shard that was given counts from the beginning of its closing, if that is known")
  func given() {
    let cases = [(Self.former(.moving, heard: 7), 5), (Self.former(.held, heard: 7), 2), (nil, 2)]
    for (former, seconds) in cases {
      var log = TakeOverLog()
      log.gained(0, former, givenBy: "b", Directory(), at: Self.time(10))
      #expect(
        log.opened(0, term: 5, at: Self.time(12))
          == TakeOver(shard: 0, term: 5, cause: .handedOver(from: "b"), duration: .seconds(seconds)))
    }
  }
}
