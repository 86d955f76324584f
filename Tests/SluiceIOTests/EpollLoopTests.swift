import Glibc
import Synchronization
import Testing

@testable import SluiceIO

@Suite struct EpollLoopTests {
  @Test func whatWasWrittenBeforeFiringIsSeenByTheHandler() throws {
    let loop = try EpollLoop.start(name: "receiver")
    let written = Atomic<Int>(0)
    let seen = Atomic<Int>(0)
    let runs = Atomic<Int>(0)
    let signal = loop.makeSignal {
      runs.wrappingAdd(1, ordering: .relaxed)
      seen.store(written.load(ordering: .relaxed), ordering: .releasing)
    }
    let count = 200_000
    for number in 1...count {
      written.store(number, ordering: .relaxed)
      signal.fire()
      // Lets the loop fall asleep at times, so that each way to wake it is used.
      if number % 20_000 == 0 { usleep(200) }
    }
    var waited = 0
    while seen.load(ordering: .acquiring) != count, waited < 120_000 {
      usleep(1_000)
      waited += 1
    }
    #expect(seen.load(ordering: .acquiring) == count, "the last signal was lost")
    #expect((1...count).contains(runs.load(ordering: .relaxed)))
    loop.stop()
    loop.join()
  }

  @Test func noJobIsLostBetweenThreads() throws {
    let group = try LoopGroup.threads(count: 2)
    let loops = group.loops
    let handled = Shared(0)
    let rounds = 20_000
    // Each job wakes the other loop, which has just gone to sleep or is about to.
    @Sendable func pass(_ number: Int) {
      if number == rounds { return handled.set(number) }
      loops[number % 2].execute { pass(number + 1) }
    }
    pass(0)
    var waited = 0
    while handled.value != rounds, waited < 120_000 {
      usleep(1_000)
      waited += 1
    }
    #expect(handled.value == rounds)
    group.stopThreads()
  }

  @Test func stopDropsAndReleasesWhatHasNotRun() throws {
    let loop = try EpollLoop.start(name: "stopped")
    let ran = Shared(false)
    final class Token: Sendable {}
    weak var job: Token?
    weak var timer: Token?
    do {
      let inJob = Token()
      let inTimer = Token()
      (job, timer) = (inJob, inTimer)
      let scheduled = Shared(false)
      loop.execute { [inTimer] in
        _ = loop.schedule(after: .seconds(3_600)) { _ = inTimer }
        scheduled.set(true)
      }
      while !scheduled.value { usleep(100) }
      loop.stop()
      loop.join()
      loop.execute { [inJob] in
        _ = inJob
        ran.set(true)
      }
    }
    #expect(job == nil)
    #expect(timer == nil)
    #expect(!ran.value)
  }

  @Test func aSignalOfAStoppedLoopIsReleased() throws {
    let loop = try EpollLoop.start(name: "stopped")
    loop.stop()
    loop.join()
    final class Token: Sendable {}
    weak var held: Token?
    do {
      let token = Token()
      held = token
      let signal = loop.makeSignal { _ = token }
      signal.fire()
    }
    #expect(held == nil)
  }

  @Test func aStoppedLoopStillSendsWhatWasWritten() throws {
    let receiving = try EpollLoop.start(name: "receiving")
    let sending = try EpollLoop.start(name: "sending")
    let network = SocketNetwork()
    let accepted = Shared<Peer?>(nil)
    let listener = try network.listen(at: .host("127.0.0.1", port: 0), group: LoopGroup([receiving])) {
      stream, loop in
      let peer = Peer(stream: stream, loop: loop)
      peer.closesAtEnd = true
      stream.readsPaused = true
      accepted.set(peer)
      stream.start(peer)
    }
    let sender = Shared<Peer?>(nil)
    sending.execute {
      _ = network.connect(to: listener.address, on: sending) { result in
        guard case .success(let stream) = result else { return }
        let peer = Peer(stream: stream, loop: sending)
        stream.start(peer)
        peer.send(pattern(8_000_000))
        sender.set(peer)
      }
    }
    while sender.value == nil || accepted.value == nil { usleep(100) }
    let peer = accepted.value!
    sending.stop()
    receiving.execute { peer.stream.readsPaused = false }
    sending.join()
    while !peer.seen.ended, peer.seen.failure == nil { usleep(100) }
    expectSame(peer.received, pattern(8_000_000 - sender.value!.seen.unsent))
    receiving.stop()
    receiving.join()
  }

  @Test func aTimerThatIsEarlierThanThoseBeforeWakesASleepingLoop() throws {
    let loop = try EpollLoop.start(name: "alarm")
    let fired = Shared(0)
    loop.execute { _ = loop.schedule(after: .seconds(600)) { fired.set(-1) } }
    for number in 1...3 {
      // The loop sleeps until a timer far in the future, or a timer has already woken it.
      usleep(20_000)
      loop.execute { _ = loop.schedule(after: .milliseconds(5)) { fired.set(number) } }
      var waited = 0
      while fired.value != number, waited < 10_000 {
        usleep(1_000)
        waited += 1
      }
      #expect(fired.value == number)
    }
    loop.stop()
    loop.join()
  }

  @Test func aTimerBehindACancelledOneWakesASleepingLoop() throws {
    let loop = try EpollLoop.start(name: "alarm")
    let fired = Shared(0)
    loop.execute {
      let early = loop.schedule(after: .milliseconds(30)) { fired.set(-1) }
      _ = loop.schedule(after: .milliseconds(60)) { fired.set(1) }
      // In a later turn: the loop has slept until the early timer, and sets no further alarm for the one after it.
      _ = loop.schedule(after: .milliseconds(5)) { loop.cancel(early) }
    }
    var waited = 0
    while fired.value == 0, waited < 10_000 {
      usleep(1_000)
      waited += 1
    }
    #expect(fired.value == 1)
    loop.stop()
    loop.join()
  }

  @Test func theBusyTimeCoversTheWork() throws {
    let loop = try EpollLoop.start(name: "busy")
    let done = Shared(false)
    loop.execute {
      let end = EpollLoop.clock() + .milliseconds(5)
      while EpollLoop.clock() < end {}
      // The next turn includes the time of this one.
      loop.execute { done.set(true) }
    }
    while !done.value { usleep(100) }
    #expect(loop.busyTime >= .milliseconds(5))
    loop.stop()
    loop.join()
  }

  @Test func aLoopCanRunOnAThreadThatIsGivenToIt() throws {
    let loop = try EpollLoop(name: "guest")
    let wasCurrent = Shared(false)
    loop.execute {
      wasCurrent.set(loop.isCurrent)
      loop.stop()
    }
    loop.run()
    #expect(wasCurrent.value)
  }

  @Test func signalsOfTheProcessAreDeliveredToALoop() async {
    await #expect(processExitsWith: .exitCode(42)) {
      // Raised for this thread, which runs the loop. The test process has other threads, which block no signal.
      ProcessSignals.block([.terminate, .hangUp])
      let loop = try EpollLoop(name: "main")
      let seen = Shared<[ProcessSignal]>([])
      let signals = try ProcessSignals.deliver([.terminate, .hangUp], to: loop) { signal in
        seen.change { $0.append(signal) }
        if seen.value.count == 1 { raise(SIGTERM) } else { loop.stop() }
      }
      raise(SIGHUP)
      loop.run()
      signals.stop()
      exit(seen.value == [.hangUp, .terminate] ? 42 : 1)
    }
  }
}
