import FaultyDisk
import Glibc
import TestSupport

/// Injects disk faults below a path, and records writes there, as long as this object exists.
final class DiskWatch: Sendable {
  struct Calls: OptionSet, Hashable, Sendable {
    let rawValue: Int32

    /// Writes that need a later sync.
    static let laterWrites = Calls(FAULTY_WRITE)
    /// Writes that are on disk when they return.
    static let syncedWrites = Calls(FAULTY_SYNCED_WRITE)
    static let writes: Calls = [.laterWrites, .syncedWrites]
    static let syncs = Calls(FAULTY_SYNC)
    static let truncations = Calls(FAULTY_TRUNCATE)
    static let opens = Calls(FAULTY_OPEN)
    static let maps = Calls(FAULTY_MAP)

    init(rawValue: Int32) {
      self.rawValue = rawValue
    }

    private init(_ call: faulty_call) {
      rawValue = Int32(call.rawValue)
    }
  }

  /// The effect of a failing call.
  enum Fault: CaseIterable, Hashable, Sendable {
    case inputOutputError
    case noSpace
    /// Half of the bytes are written.
    case short
    /// The call is executed, but reports a failure.
    case doneButSaidToFail
    /// The first call is executed but reports a failure; all later writes are rejected.
    case firstDoneButSaidToFail
  }

  private let watch: Int32

  init(_ prefix: String) throws {
    watch = faulty_watch(prefix)
    if watch < 0 { throw TestFailure("too many files are watched") }
  }

  deinit {
    faulty_unwatch(watch)
  }

  /// Makes calls of these kinds fail, after `skipped` others.
  func fail(_ calls: Calls, after skipped: Int64 = 0, count: Int64 = .max, _ fault: Fault = .inputOutputError)
  {
    let mode =
      switch fault {
      case .short: FAULTY_PARTIAL
      case .doneButSaidToFail: FAULTY_DONE
      case .firstDoneButSaidToFail: FAULTY_DONE_ONCE
      default: FAULTY_REFUSED
      }
    faulty_fail(watch, calls.rawValue, skipped, count, fault == .noSpace ? ENOSPC : EIO, mode)
  }

  /// Makes the next `count` calls fail with a system error.
  func refuse(_ calls: Calls, count: Int64, error: Int32) {
    faulty_fail(watch, calls.rawValue, 0, count, error, FAULTY_REFUSED)
  }

  /// Limits the directory's disk space to `bytes`.
  func limit(_ bytes: Int64) { faulty_limit(watch, bytes) }

  func heal() { faulty_heal(watch) }

  func count(_ calls: Calls) -> Int64 { faulty_calls(watch, calls.rawValue) }

  /// The number of failed calls.
  var failures: Int64 { faulty_failures(watch) }

  func record() { faulty_record(watch) }

  var eventCount: Int { Int(faulty_event_count(watch)) }

  func event(_ index: Int) -> faulty_event { faulty_event_at(watch, Int64(index)) }
}
