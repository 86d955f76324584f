/// A variable that closures of one thread share.
// @unchecked: used by that thread alone.
final class Box<Value>: @unchecked Sendable {
  var value: Value

  init(_ value: Value) {
    self.value = value
  }
}
