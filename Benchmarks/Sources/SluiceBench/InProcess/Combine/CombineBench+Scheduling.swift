import CLinux
import Dispatch
import Glibc
import ReactiveCore
import ReactiveFoundation

// From one thread to another.
extension CombineBench {
  static var scheduling: [CombineScenario] {
    [
      // The time of all threads counts: the queue's does most of the work.
      CombineScenario(
        "PassthroughSubject → receive(on: DispatchQueue) → sink", target: 250, values: count,
        clock: CLOCK_PROCESS_CPUTIME_ID
      ) {
        let subject = PassthroughSubject<Int, Never>()
        let total = Total()
        let hasArrived = DispatchSemaphore(value: 0)
        let queue = DispatchQueue(label: "sluice-bench")
        let cancellable = subject.receive(on: queue).sink { number in
          total.sum &+= number
          if number == 0 { hasArrived.signal() }
        }
        queue.sync {}  // the subscription arrives on the queue, too
        return {
          for number in (0..<count).reversed() { subject.send(number) }
          hasArrived.wait()
          withExtendedLifetime(cancellable) { keep(total.sum) }
        }
      }
    ]
  }
}
