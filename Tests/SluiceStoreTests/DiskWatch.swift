import FaultyDisk
import Glibc
import TestSupport

/// The faults of the disk below a path, and what is written there; as long as this object lives.
final class DiskWatch: Sendable {
  struct Calls: OptionSet, Hashable, Sendable {
    let rawValue: Int32

    /// Those after which a sync is due.
    static let laterWrites = Calls(FAULTY_WRITE)
    /// Those that are on disk when they return.
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

  /// What a failing call does.
  enum Fault: CaseIterable, Hashable, Sendable {
    case inputOutputError
    case noSpace
    /// Of the bytes half are written.
    case short
    /// It is done, and yet said to have failed.
    case doneButSaidToFail
    /// So it is with the first; from then on all writes are refused.
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

  /// Lets calls fail, of these kinds, from the one after so many others on.
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

  /// Lets so many of the next calls be refused with an error of the system's.
  func refuse(_ calls: Calls, count: Int64, error: Int32) {
    faulty_fail(watch, calls.rawValue, 0, count, error, FAULTY_REFUSED)
  }

  /// Lets the disk have no more than so many bytes for the directory.
  func limit(_ bytes: Int64) { faulty_limit(watch, bytes) }

  func heal() { faulty_heal(watch) }

  func count(_ calls: Calls) -> Int64 { faulty_calls(watch, calls.rawValue) }

  /// Calls that have failed.
  var failures: Int64 { faulty_failures(watch) }

  func record() { faulty_record(watch) }

  var eventCount: Int { Int(faulty_event_count(watch)) }

  func event(_ index: Int) -> faulty_event { faulty_event_at(watch, Int64(index)) }
}
