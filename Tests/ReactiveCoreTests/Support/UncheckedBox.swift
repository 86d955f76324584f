/// Takes something to another thread that the test synchronises itself.
struct UncheckedBox<Value>: @unchecked Sendable {
  // What is inside is either safe to use from several threads, which is what the test is about, or used after all have ended.
  let value: Value

  init(_ value: Value) {
    self.value = value
  }
}
