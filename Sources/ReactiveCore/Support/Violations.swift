import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

// How calls that break the protocol between publisher and subscriber are treated.
//
// A subscriber that asks for nothing is a mistake in the program's own code and stops it, as in Combine. Mistakes of a
// publisher, which may belong to another library, never do: the operator ignores them, and a debug build prints each once.

extension Subscribers.Demand {
  /// Stops the program on a request for no values.
  @inlinable
  package func assertNonZero(file: StaticString = #file, line: UInt = #line) {
    if self == .none { fatalError("API Violation: demand must not be zero", file: file, line: line) }
  }
}

@usableFromInline @inline(never)
func violation(_ happening: StaticString) -> Never { fatalError("Invalid state: \(happening)") }

/// The mistakes of a publisher towards an operator.
@usableFromInline
package enum Violation: String, Sendable {
  case valueBeforeSubscription = "a value before a subscription"
  case completionBeforeSubscription = "a completion before a subscription"
  case valueWithoutDemand = "a value that was not asked for"

  /// The lines written so far, each once. Empty in release builds.
  package static var reported: Set<String> { reports.withLock { $0 } }

  private static let reports = Mutex<Set<String>>([])

  #if DEBUG
    /// Called with each line, written or not, while a test watches what it runs.
    @TaskLocal package static var observer: (@Sendable (String) -> Void)?
  #endif

  /// Notes that an operator has ignored the call; in debug builds, writes one line to the standard error the first time that
  /// this operator has ignored such a call.
  @usableFromInline @inline(never)
  func ignored(by name: StaticString) { ignored(byOperator: name.description) }

  @usableFromInline @inline(never)
  func ignored(byOperator name: String) {
    #if DEBUG
      let line = "\(name): the publisher has sent \(rawValue), which was ignored\n"
      Self.observer?(line)
      guard Self.reports.withLock({ $0.insert(line).inserted }) else { return }
      let bytes = Array(line.utf8)
      _ = unsafe write(2, bytes, bytes.count)
    #endif
  }
}

/// The part of an operator that knows whether a publisher has sent its subscription. Its description is the operator's name.
///
/// An operator that keeps state ignores a call of a publisher that it isn't open for, and calls `ignoreIfEarly(_:)` then.
@usableFromInline
protocol SubscriptionAwaiting: CustomStringConvertible {
  /// Whether the publisher has yet to send its subscription, and the operator waits for it.
  var isAwaitingSubscription: Bool { get }
}

extension SubscriptionAwaiting {
  /// Notes that a call of the publisher is ignored, if it comes before the subscription.
  ///
  /// - Returns: Whether it does.
  @usableFromInline @inline(never)
  @discardableResult
  func ignoreIfEarly(_ violation: Violation) -> Bool {
    guard isAwaitingSubscription else { return false }
    violation.ignored(byOperator: description)
    return true
  }
}
