import Dispatch
import SluiceClient
import Synchronization

/// Receives a subscriber's records, checks each of them, and reads the clocks of the delivering thread at the first and the last.
// @unchecked: used by the client's loop until `done` is signalled, then by the thread that has waited for it; the rest is atomic.
final class RecordMeter: @unchecked Sendable {
  private let total: Int
  private var received = 0
  private var wrong = 0
  private var start: (cpu: UInt64, time: UInt64) = (0, 0)
  private var end: (cpu: UInt64, time: UInt64) = (0, 0)
  private let progress = Atomic<Int>(0)
  private let done = DispatchSemaphore(value: 0)

  /// - Parameter total: the number of records after which it is done.
  init(total: Int) {
    self.total = total
  }

  /// Handles a record. Payloads begin with their number, as `BatchTemplate` writes them.
  @inline(__always)
  func take(_ record: TopicRecord) {
    if received == 0 { start = (Stopwatch.threadCPU(), monotonicNanoseconds()) }
    let number = record.withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self)) }
    if number != UInt64(received) || record.offset != number { wrong += 1 }
    received += 1
    if received & 255 == 0 { progress.store(received, ordering: .relaxed) }
    if received == total { finish() }
  }

  /// Called when the stream has ended, which is too early if records are missing.
  func ended() {
    if received < total { done.signal() }
  }

  @inline(never)
  private func finish() {
    end = (Stopwatch.threadCPU(), monotonicNanoseconds())
    progress.store(received, ordering: .relaxed)
    done.signal()
  }

  /// The approximate number of received records. From any thread.
  var count: Int { progress.load(ordering: .relaxed) }

  var isDone: Bool { count == total }

  /// Waits until all records have arrived.
  func wait(seconds: Double = 60) throws {
    guard done.wait(timeout: .now() + seconds) == .success else {
      throw BenchError("\(count) of \(total) records arrived in \(Format.digits(seconds)) seconds")
    }
    guard received == total else {
      throw BenchError("the stream ended after \(received) of \(total) records")
    }
    guard wrong == 0 else { throw BenchError("\(wrong) of \(total) records are out of order") }
  }

  /// The readings from the first record to the last.
  var readings: [Reading] {
    Reading.client(total, cpu: Double(end.cpu - start.cpu), wall: Double(end.time - start.time))
  }
}
