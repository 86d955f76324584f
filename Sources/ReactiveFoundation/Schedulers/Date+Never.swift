import Foundation

extension Date {
  /// Whether it will never come, as far as timers are concerned.
  var isNever: Bool { !(self < .distantFuture) }
}
