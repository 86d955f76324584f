import SluiceIO
import SluiceStore
import Testing

@testable import SluiceCluster

@Suite("When checkpoints are due")
struct CheckpointScheduleTests {
  private static func time(_ seconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: 0) + .seconds(seconds)
  }

  private static func schedule(changedBytes: Int = 0) -> CheckpointSchedule {
    CheckpointSchedule(
      dirty: [TopicID(rawValue: 1)], changedBytes: changedBytes, front: 3, bytes: 100, interval: .seconds(10),
      now: time(1))
  }

  @Test("they are due when enough has changed, and not before their interval is over")
  func due() {
    var schedule = Self.schedule(changedBytes: 60)
    schedule.changed(TopicID(rawValue: 2))
    schedule.sent(39)
    #expect(!schedule.isDue(at: Self.time(1)))
    schedule.sent(1)
    #expect(schedule.isDue(at: Self.time(1)))
    #expect(schedule.dirty == [TopicID(rawValue: 1), TopicID(rawValue: 2)])
    schedule.written(front: 9, at: Self.time(1))
    #expect(schedule.dirty.isEmpty && schedule.changedBytes == 0 && schedule.front == 9)
    schedule.sent(100)
    #expect(!schedule.isDue(at: Self.time(10)))
    #expect(schedule.isDue(at: Self.time(11)))
  }

  @Test("they are due at once where space waits for them")
  func wanted() {
    var schedule = Self.schedule()
    schedule.want()
    #expect(schedule.isDue(at: Self.time(1)))
    schedule.written(front: 9, at: Self.time(1))
    #expect(!schedule.isDue(at: Self.time(100)))
  }

  @Test("after the engine had no room they wait until as much has changed again")
  func refused() {
    var schedule = Self.schedule(changedBytes: 120)
    schedule.want()
    schedule.refused()
    #expect(!schedule.isDue(at: Self.time(1)))
    schedule.sent(99)
    #expect(!schedule.isDue(at: Self.time(1)))
    schedule.sent(1)
    #expect(schedule.isDue(at: Self.time(1)))
  }
}
