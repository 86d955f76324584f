import CLinux
import Glibc

/// An epoll set. Level-triggered; a registration has a number that is returned with its events.
final class Poller {
  private let descriptor: Int32
  private let events: UnsafeMutableBufferPointer<epoll_event>

  static let readable = UInt32(EPOLLIN.rawValue)
  static let writable = UInt32(EPOLLOUT.rawValue)

  /// - Parameter capacity: the most events that one `wait` reports.
  init(capacity: Int = 512) throws {
    descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard descriptor >= 0 else { throw BenchError("epoll: \(errorText())") }
    events = .allocate(capacity: capacity)
    events.initialize(repeating: epoll_event())
  }

  deinit {
    close(descriptor)
    events.deallocate()
  }

  func add(_ file: Int32, interest: UInt32, number: UInt64) {
    control(EPOLL_CTL_ADD, file, interest, number)
  }

  func modify(_ file: Int32, interest: UInt32, number: UInt64) {
    control(EPOLL_CTL_MOD, file, interest, number)
  }

  /// Waits at most `milliseconds` (-1: without limit) and returns the number of events.
  func wait(milliseconds: Int32) -> Int {
    max(Int(epoll_wait(descriptor, events.baseAddress!, Int32(events.count), milliseconds)), 0)
  }

  /// The number and the readiness bits of an event of the last `wait`.
  @inline(__always)
  func event(_ index: Int) -> (number: UInt64, ready: UInt32) {
    (events[index].data.u64, events[index].events)
  }

  private func control(_ operation: Int32, _ file: Int32, _ interest: UInt32, _ number: UInt64) {
    var event = epoll_event()
    event.events = interest
    event.data.u64 = number
    epoll_ctl(descriptor, operation, file, &event)
  }
}
