import ReactiveCore
import ReactiveTestSupport
import Testing

/// An operator, applied to as many sources as it has upstreams.
struct OperatorCase: CustomTestStringConvertible, Sendable {
  typealias Source = AnyPublisher<Int, Oops>
  typealias Result = AnyPublisher<String, any Error>

  /// The function with its labels, as the sources of the module declare it.
  let name: String
  /// A label that distinguishes several cases of one function.
  let detail: String
  let upstreams: Int
  /// Whether the operator has no state of its own, so that calls before the subscription pass through it.
  let passesEverything: Bool
  let make: @Sendable ([Source], ManualScheduler) -> Result

  init<P: Publisher & SendableMetatype>(
    _ name: String, _ detail: String = "", of upstreams: Int = 1, passesEverything: Bool = false,
    _ make: @escaping @Sendable ([Source], ManualScheduler) -> P
  ) {
    self.name = name
    self.detail = detail
    self.upstreams = upstreams
    self.passesEverything = passesEverything
    self.make = { sources, scheduler in
      let result = make(sources, scheduler)
      return AnyPublisher(
        AnyPublisher(result).map { String(describing: $0) }.mapError { $0 as any Error })
    }
  }

  var testDescription: String { detail.isEmpty ? name : "\(name), \(detail)" }
}

extension OperatorCase {
  /// All operators. `OperatorTableTests` compares the list with the module's sources.
  static let all = transforming + reducing + combining + timed + others

  /// Functions of `Publisher` that are no operators.
  static let noOperators: Set<String> = [
    "subscribe(_:)", "sink(receiveCompletion:receiveValue:)", "sink(receiveValue:)", "assign(to:on:)",
    "assign(to:)",
  ]
}
