/// Takes something to another thread that the test synchronises itself.
package struct UncheckedBox<Value>: @unchecked Sendable {
  // The content is either safe to use from several threads, which the test checks, or used after all have ended.
  package let value: Value

  package init(_ value: Value) {
    self.value = value
  }
}
