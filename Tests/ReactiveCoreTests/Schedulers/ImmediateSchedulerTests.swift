import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct ImmediateSchedulerTests {
  @Test func runsEverythingAtOnce() {
    let scheduler = ImmediateScheduler.shared
    var count = 0
    scheduler.schedule { count += 1 }
    #expect(count == 1)
    scheduler.schedule(after: scheduler.now.advanced(by: .seconds(1_000))) { count += 1 }
    scheduler.schedule(after: scheduler.now, tolerance: .milliseconds(1)) { count += 1 }
    #expect(count == 3)
    let repetition = scheduler.schedule(after: scheduler.now, interval: .seconds(1)) { count += 1 }
    repetition.cancel()
    #expect(count == 4)
  }

  @Test func timeStandsStill() {
    let start = ImmediateScheduler.shared.now
    #expect(start.distance(to: start.advanced(by: 5)) == 0)
    #expect(ImmediateScheduler.SchedulerTimeType.Stride.seconds(3) == 0)
    #expect(ImmediateScheduler.SchedulerTimeType.Stride(3) + 4 == 7)
    #expect(ImmediateScheduler.shared.minimumTolerance == 0)
  }
}
