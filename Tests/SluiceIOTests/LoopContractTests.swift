import SluiceIO
import Testing

/// Timers, jobs, signals and turns, on any loop.
@Suite struct LoopContractTests {
  @Test(arguments: Venue.all) func timersComeInTheOrderOfTheirDeadlines(venue: Venue) throws {
    try venue.use { stage in
      let loop = stage.loops[0]
      let order = Shared<[Int]>([])
      stage.run(on: loop) {
        for delay in [9, 3, 7, 1, 5, 3] {
          _ = loop.schedule(after: .milliseconds(delay)) { order.change { $0.append(delay) } }
        }
      }
      #expect(stage.wait { order.value.count == 6 })
      #expect(order.value == [1, 3, 3, 5, 7, 9])
    }
  }

  @Test(arguments: Venue.all) func aTimerNeverFiresEarly(venue: Venue) throws {
    try venue.use { stage in
      let loop = stage.loops[0]
      let early = Shared<[Int]>([])
      let fired = Shared(0)
      stage.run(on: loop) {
        for step in 0..<50 {
          let deadline = loop.now + .microseconds(step * 137)
          _ = loop.schedule(at: deadline) {
            if loop.now < deadline { early.change { $0.append(step) } }
            fired.change { $0 += 1 }
          }
        }
      }
      #expect(stage.wait { fired.value == 50 })
      #expect(early.value == [])
    }
  }

  @Test(arguments: Venue.all) func aCancelledTimerIsReleasedAndNeverFires(venue: Venue) throws {
    try venue.use { stage in
      let loop = stage.loops[0]
      let fired = Shared(false)
      let released = Shared(false)
      let last = Shared(false)
      stage.run(on: loop) {
        let guardian = Guardian { released.set(true) }
        let token = loop.schedule(after: .milliseconds(1)) {
          fired.set(true)
          guardian.touch()
        }
        _ = loop.schedule(after: .milliseconds(5)) { last.set(true) }
        loop.cancel(token)
        loop.cancel(token)
      }
      #expect(released.value)
      #expect(stage.wait { last.value })
      #expect(!fired.value)
    }
  }

  @Test(arguments: Venue.all) func cancellingAFiredTimerLeavesTheNextOneAlone(venue: Venue) throws {
    try venue.use { stage in
      let loop = stage.loops[0]
      let fired = Shared<[Int]>([])
      stage.run(on: loop) {
        var first = TimerToken(number: 0)
        first = loop.schedule(after: .milliseconds(1)) {
          fired.change { $0.append(1) }
          _ = loop.schedule(after: .milliseconds(1)) { fired.change { $0.append(2) } }
          loop.cancel(first)
        }
      }
      #expect(stage.wait { fired.value == [1, 2] })
    }
  }

  @Test(arguments: Venue.all) func aTimerThatRearmsItselfForNowLetsTheLoopGoOn(venue: Venue) throws {
    try venue.use { stage in
      let loop = stage.loops[0]
      let done = Shared(false)
      stage.run(on: loop) {
        let again = Repeater(loop: loop) { done.value }
        again.go()
        _ = loop.schedule(after: .milliseconds(2)) { done.set(true) }
      }
      #expect(stage.wait { done.value })
    }
  }

  @Test(arguments: Venue.all) func jobsOfOneThreadRunInOrder(venue: Venue) throws {
    try venue.use { stage in
      let order = Shared<[Int]>([])
      for number in 0..<1_000 {
        stage.loops[1].execute { order.change { $0.append(number) } }
      }
      #expect(stage.wait { order.value.count == 1_000 })
      #expect(order.value == Array(0..<1_000))
    }
  }

  @Test(arguments: Venue.all) func jobsRunOnTheirLoop(venue: Venue) throws {
    try venue.use { stage in
      let loops = stage.loops
      #expect(stage.run(on: loops[0]) { loops[0].isCurrent })
      #expect(!stage.run(on: loops[0]) { loops[1].isCurrent })
      #expect(!loops[0].isCurrent)
    }
  }

  @Test(arguments: Venue.all) func aSignalFiredManyTimesInOneTurnRunsOnce(venue: Venue) throws {
    try venue.use { stage in
      for sender in stage.loops {
        let receiver = stage.loops[0]
        let runs = Shared(0)
        let signal = receiver.makeSignal { runs.change { $0 += 1 } }
        if sender === receiver {
          stage.run(on: sender) { for _ in 0..<100 { signal.fire() } }
          #expect(stage.wait { runs.value > 0 })
          stage.settle()
          #expect(runs.value == 1)
        } else {
          stage.run(on: sender) { signal.fire() }
          #expect(stage.wait { runs.value == 1 })
        }
      }
    }
  }

  @Test(arguments: Venue.all) func aSignalFiredByItsOwnHandlerRunsAgain(venue: Venue) throws {
    try venue.use { stage in
      let loop = stage.loops[0]
      let runs = Shared(0)
      let itself = Shared<(any LoopSignal)?>(nil)
      let signal = loop.makeSignal {
        runs.change { $0 += 1 }
        if runs.value < 10 { itself.value?.fire() }
      }
      itself.set(signal)
      signal.fire()
      #expect(stage.wait { runs.value == 10 })
      itself.set(nil)
    }
  }

  @Test(arguments: Venue.all) func participantsActAfterAllElseOfATurnAndAgainAsLongAsTheyHaveMore(
    venue: Venue
  ) throws {
    try venue.use { stage in
      let loop = stage.loops[0]
      let order = Shared<[String]>([])
      let turns = Shared(0)
      stage.run(on: loop) {
        let participant = Participant {
          guard order.value.contains("signal") else { return false }
          turns.change { $0 += 1 }
          order.change { $0.append("turn \(turns.value)") }
          return turns.value < 3
        }
        loop.addTurnParticipant(participant)
      }
      let signal = loop.makeSignal { order.change { $0.append("signal") } }
      stage.run(on: loop) {
        order.change { $0.append("job") }
        signal.fire()
      }
      #expect(stage.wait { turns.value >= 3 })
      #expect(Array(order.value.prefix(5)) == ["job", "signal", "turn 1", "turn 2", "turn 3"])
    }
  }

  @Test(arguments: Venue.all) func participantsAreCalledInOrderOfRegistration(venue: Venue) throws {
    try venue.use { stage in
      let loop = stage.loops[0]
      let order = Shared<[Int]>([])
      stage.run(on: loop) {
        for number in 0..<3 {
          loop.addTurnParticipant(
            Participant {
              order.change { $0.append(number) }
              return false
            })
        }
      }
      #expect(stage.wait { order.value.count >= 3 })
      #expect(Array(order.value.prefix(3)) == [0, 1, 2])
    }
  }

  @Test(arguments: Venue.all) func theClocksOfATurnStandStill(venue: Venue) throws {
    try venue.use { stage in
      let loop = stage.loops[0]
      #expect(
        stage.run(on: loop) {
          let before = (loop.now, loop.wallClock)
          var work = 0
          for number in 0..<100_000 { work &+= number }
          return loop.now == before.0 && loop.wallClock == before.1 && work > 0
        })
      #expect(stage.run(on: loop) { loop.wallClock } > 1_600_000_000_000)
    }
  }
}

private final class Guardian: Sendable {
  private let released: @Sendable () -> Void
  init(_ released: @escaping @Sendable () -> Void) { self.released = released }
  deinit { released() }
  func touch() {}
}

private final class Participant: TurnParticipant {
  private let body: () -> Bool
  init(_ body: @escaping () -> Bool) { self.body = body }
  func turnEnded() -> Bool { body() }
}

private final class Repeater {
  private let loop: any EventLoop
  private let isDone: () -> Bool

  init(loop: any EventLoop, until isDone: @escaping () -> Bool) {
    self.loop = loop
    self.isDone = isDone
  }

  func go() {
    if isDone() { return }
    _ = loop.schedule(at: loop.now) { self.go() }
  }
}
