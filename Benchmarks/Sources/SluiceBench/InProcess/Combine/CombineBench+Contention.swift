import CLinux
import CombineExtras
import Glibc
import PortableCombine

// Several threads that subscribe to and cancel the same publisher.
extension CombineBench {
  static var contention: [CombineScenario] {
    comingAndGoing(threads: 1) + comingAndGoing(threads: 8) + longContention
  }

  /// 20,000 times on each of eight threads, in CPU time and in wall time.
  private static var longContention: [CombineScenario] {
    [("CPU time", CLOCK_PROCESS_CPUTIME_ID, 8_000.0), ("wall time", CLOCK_MONOTONIC, 5_000.0)].map {
      unit, clock, target in
      comingAndGoing(
        "share(replay: 1, scope: .whileConnected), 20,000 times, \(unit)", 8, target: target, times: 20_000,
        clock: clock
      ) { PassthroughSubject<Int, Never>().share(replay: 1, scope: .whileConnected) }
    }
  }

  private static func comingAndGoing(threads: Int) -> [CombineScenario] {
    let (subject, replay): (Double?, Double) = threads == 1 ? (nil, 2_000) : (5_000, 8_000)
    return [
      comingAndGoing("PassthroughSubject", threads, target: subject) { PassthroughSubject<Int, Never>() },
      comingAndGoing("CurrentValueSubject", threads, target: subject) { CurrentValueSubject<Int, Never>(0) },
      comingAndGoing("share()", threads, target: subject) { PassthroughSubject<Int, Never>().share() },
      comingAndGoing("share(replay: 1, scope: .forever)", threads, target: replay) {
        PassthroughSubject<Int, Never>().share(replay: 1, scope: .forever)
      },
      comingAndGoing("share(replay: 1, scope: .whileConnected)", threads, target: replay) {
        PassthroughSubject<Int, Never>().share(replay: 1, scope: .whileConnected)
      },
    ]
  }

  /// A scenario in which each thread subscribes and cancels repeatedly.
  ///
  /// - Parameters:
  ///   - times: The number of repetitions of each thread.
  ///   - clock: The measured clock; by default the CPU time of all threads.
  private static func comingAndGoing<P: Publisher>(
    _ name: String, _ threads: Int, target: Double?, times: Int = 1_000,
    clock: clockid_t = CLOCK_PROCESS_CPUTIME_ID, _ make: @escaping () -> P
  ) -> CombineScenario where P.Output == Int, P.Failure == Never {
    CombineScenario(
      "\(name): sink and cancel, \(threads) thread\(threads == 1 ? "" : "s")", target: target,
      values: threads * times, clock: clock
    ) {
      let publisher = make()
      return {
        ThreadTeam.run(threads) {
          var sum = 0
          for _ in 0..<times {
            publisher.sink { sum &+= $0 }.cancel()
          }
          keep(sum)
        }
      }
    }
  }
}

/// Threads that do the same work at the same time.
enum ThreadTeam {
  private final class Work {
    let body: () -> Void
    init(_ body: @escaping () -> Void) { self.body = body }
  }

  /// Calls the body on that many threads at once, or on the calling thread for a count of 1, and waits until all have returned.
  static func run(_ count: Int, _ body: @escaping () -> Void) {
    guard count > 1 else { return body() }
    let work = Work(body)
    let threads = (0..<count).map { _ in
      var thread = pthread_t()
      let code = pthread_create(
        &thread, nil,
        { argument in
          Unmanaged<Work>.fromOpaque(argument!).takeRetainedValue().body()
          return nil
        }, Unmanaged.passRetained(work).toOpaque())
      precondition(code == 0, "a thread cannot be started: \(code)")
      return thread
    }
    for thread in threads { pthread_join(thread, nil) }
  }
}
