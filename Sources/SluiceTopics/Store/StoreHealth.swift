import SluiceIO
import SluiceStore
import SluiceWire
import Synchronization

/// Whether the store accepts records, why not, since when, and how large it is. The writer's loop changes it; any thread reads it.
final class StoreHealth: Sendable {
  struct Failure {
    var fault: Fault
    /// Whether the store's files were moved or removed.
    var isRemoved = false
    var since: MonotonicTime
  }

  private let isFaulty = Atomic(false)
  private let presentFailure = Mutex<Failure?>(nil)
  private let presentSize = Mutex<StoreSize?>(nil)

  /// Nil while the store accepts records.
  var failure: Failure? { isFaulty.load(ordering: .acquiring) ? presentFailure.withLock { $0 } : nil }

  var size: StoreSize? {
    get { presentSize.withLock { $0 } }
    set { presentSize.withLock { $0 = newValue } }
  }

  /// Records a failure. Returns whether it differs from the previous one.
  func failed(_ error: StoreError, now: MonotonicTime) -> Bool {
    let fault = Self.fault(error)
    let isNew = presentFailure.withLock { failure in
      let isRemoved = error.kind == .removed
      defer { failure = Failure(fault: fault, isRemoved: isRemoved, since: failure?.since ?? now) }
      return failure?.fault.code != fault.code || failure?.isRemoved != isRemoved
    }
    isFaulty.store(true, ordering: .releasing)
    return isNew
  }

  /// Records that the store works again. Returns whether there was a failure.
  func recovered() -> Bool {
    guard isFaulty.exchange(false, ordering: .acquiringAndReleasing) else { return false }
    presentFailure.withLock { $0 = nil }
    return true
  }

  /// The error that clients get, without paths.
  static func fault(_ error: StoreError) -> Fault {
    let waits = "publishing to durable topics is paused, try again later"
    let (code, message): (ErrorCode, String) =
      switch error.kind {
      case .full: (.storageFull, "the broker's storage is full; \(waits)")
      case .unavailable, .outcomeUnknown: (.storageFailed, "the broker can't reach its storage; \(waits)")
      case .removed:
        (.storageFailed, "the broker's store was removed or replaced; \(waits)")
      case .fenced:
        (.topicMoved, "another node stores this topic now; open the stream again to continue there")
      default: (.storageFailed, "the broker's storage fails; \(waits)")
      }
    return Fault(code: code, message: message)
  }
}
