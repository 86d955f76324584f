import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

// What becomes of calls that break the protocol between publisher and subscriber.
//
// A subscriber that asks for nothing is a mistake in the program's own code and stops it, as in Combine. What a publisher does
// wrong, which may be another library's, never does: the operator ignores it, and a debug build says so once.

extension Subscribers.Demand {
  /// Stops the program when nothing is asked for.
  @inlinable
  package func assertNonZero(file: StaticString = #file, line: UInt = #line) {
    if self == .none {
      fatalError("API Violation: demand must not be zero", file: file, line: line)
    }
  }
}

@usableFromInline
@inline(never)
func violation(_ happening: StaticString) -> Never {
  fatalError("Invalid state: \(happening)")
}

/// What a publisher may do wrong towards an operator.
@usableFromInline
package enum Violation: String, Sendable {
  case valueBeforeSubscription = "a value before a subscription"
  case completionBeforeSubscription = "a completion before a subscription"
  case valueWithoutDemand = "a value that was not asked for"

  /// The lines written so far, each once. Empty in release builds.
  package static var reported: Set<String> { reports.withLock { $0 } }

  private static let reports = Mutex<Set<String>>([])

  /// Notes that an operator has ignored the call; in debug builds, writes one line to the standard error the first time that
  /// this operator has ignored such a call.
  @usableFromInline
  @inline(never)
  func ignored(by name: StaticString) {
    #if DEBUG
      let line = "\(name): the publisher has sent \(rawValue), which was ignored\n"
      guard Self.reports.withLock({ $0.insert(line).inserted }) else { return }
      let bytes = Array(line.utf8)
      _ = unsafe write(2, bytes, bytes.count)
    #endif
  }
}
