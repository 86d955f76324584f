/// A variable shared by closures of one thread.
// @unchecked: used only on that thread.
final class Box<Value>: @unchecked Sendable {
  var value: Value

  init(_ value: Value) {
    self.value = value
  }
}
